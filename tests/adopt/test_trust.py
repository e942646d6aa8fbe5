"""Trust while running: refresh, revocation, shadow calls, forks, ranks, and the files that go to the ledger."""

import json
import multiprocessing
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from forge.adopt import adopt
from forge.adopt.engines import vllm
from forge.adopt.ranks import require_equal
from forge.errors import AdoptionRefused, ProofRefused, UsageError
from forge.ledger.signatures.signing import SigningKey, signed_note
from forge.operations.rmsnorm import rmsnorm as reference
from forge.proof.publication import publication_text
from tests.adopt.making import KV_CACHE_APPEND, RMSNORM, WRONG_RMSNORM, kernel, publish
from tests.adopt.publishing import calling_while_publishing
from tests.projections.histories import LEDGER_ID

EPS = 1e-6
X, WEIGHT = torch.randn(4, 64, generator=torch.Generator().manual_seed(1)), torch.ones(64)


def takes(ops) -> str:
    return ops.explain("rmsnorm", X, WEIGHT)["takes"]


def test_a_revoked_kernel_is_not_started_again_from_the_next_call_on(tmp_path):
    made = kernel("rmsnorm", RMSNORM + "# revoked\n")
    publish(tmp_path, [made])
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        torch.ops.forge.rmsnorm(X, WEIGHT, EPS)
        publish(tmp_path, [{**made, "status": "revoked", "status_reason": "wrong_result: off by one"}], seq=2)
        assert ops.refresh()
        torch.ops.forge.rmsnorm(X, WEIGHT, EPS)
        assert [line["backend"] for line in ops.report().lines] == ["fallback", "source"]
        (line,) = [one for one in ops.report().lines if one["backend"] == "fallback"]
        assert "off by one" in line["detail"]
        publish(tmp_path, [made], seq=3)
        assert ops.refresh()
        assert takes(ops) == "source"


def test_the_registry_is_followed_without_a_call(tmp_path):
    made = kernel("rmsnorm", RMSNORM + "# followed\n")
    publish(tmp_path, [made])
    with adopt(tmp_path, trust="promoted", refresh_s=0.005) as ops:
        assert takes(ops) == "source"
        publish(tmp_path, [{**made, "status": "revoked", "status_reason": "gone"}], seq=2)
        waited = threading.Event()
        for _ in range(12_000):
            if takes(ops) == "fallback":
                break
            waited.wait(0.005)
        assert takes(ops) == "fallback"


def test_a_damaged_publication_leaves_the_last_good_one_deciding(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        (tmp_path / "current.json").write_bytes(b"{")
        assert not ops.refresh()
        assert takes(ops) == "source"
        assert "can't be read" in ops.report().document["registry_error"]


def test_threads_that_call_while_kernels_come_and_go_get_right_answers(tmp_path):
    found = calling_while_publishing(tmp_path, count=60, threads=8)
    assert (found["wrong"], found["errors"], found["revoked kernels that ran after a refresh"]) == (0, [], 0)
    assert found["backends"] == ["fallback", "source"]


def test_a_shadow_call_withdraws_a_kernel_with_a_planted_bug_and_writes_a_report(tmp_path):
    publish(tmp_path / "registry", [kernel("rmsnorm", WRONG_RMSNORM)])
    with adopt(tmp_path / "registry", trust="promoted", refresh_s=0, shadow=0.5, doubts=tmp_path) as ops:
        wrong, right = torch.ops.forge.rmsnorm(X, WEIGHT, EPS), torch.ops.forge.rmsnorm(X, WEIGHT, EPS)
        assert not torch.allclose(wrong, reference(X, WEIGHT, EPS), rtol=1e-2)
        torch.testing.assert_close(right, reference(X, WEIGHT, EPS))
        assert takes(ops) == "fallback"
        torch.testing.assert_close(torch.ops.forge.rmsnorm(X, WEIGHT, EPS), reference(X, WEIGHT, EPS))
        (doubt,) = ops.report().document["doubts"]
        (line,) = [one for one in ops.report().lines if one["backend"] == "source"]
        assert (line["hits"], line["shadowed"], line["shadow_breaches"]) == (2, 1, 1)
    (path,) = tmp_path.glob("forge-doubt-*.json")
    written = json.loads(path.read_text())
    assert doubt["report"] == str(path)
    assert written["kernel_id"] == "torch_rmsnorm_cpu_fp32_v1"
    assert written["shape"] == {"batch": 4, "hidden_size": 64}
    assert written["excess"] > 1
    assert [one["name"] for one in written["inputs"]] == ["x", "weight"]


def test_shadow_calls_find_nothing_wrong_with_a_right_kernel(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, trust="promoted", refresh_s=0, shadow=1.0) as ops:
        for scale in (1e-3, 1.0, 1e3):
            torch.ops.forge.rmsnorm(X * scale, WEIGHT, EPS)
        torch.ops.forge.rmsnorm(X.new_full(X.shape, float("nan")), WEIGHT, EPS)
        (line,) = ops.report().lines
        assert (line["shadowed"], line["shadow_breaches"]) == (4, 0)


def test_a_shadow_call_puts_right_what_a_wrong_kernel_wrote_in_place(tmp_path):
    cache = {"tokens": 3, "slots": 8, "kv_heads": 2, "head_dim": 4}
    wrong = KV_CACHE_APPEND.replace(
        "value_cache[slot] = key[token], value[token]", "value_cache[slot] = key[token], key[token]"
    )
    publish(tmp_path / "registry", [kernel("kv_cache_append", wrong, shape=cache, edges=())])
    key, value = torch.ones(3, 2, 4), 2 * torch.ones(3, 2, 4)
    with adopt(tmp_path / "registry", trust="promoted", refresh_s=0, shadow=1.0, doubts=tmp_path) as ops:
        caches = torch.zeros(8, 2, 4), torch.zeros(8, 2, 4)
        torch.ops.forge.kv_cache_append(key, value, *caches, torch.tensor([1, -1, 3]))
        assert caches[1][1].eq(2).all()
        assert ops.report().document["doubts"][0]["output"] == "value_cache"


def test_a_forked_child_takes_the_fallback_until_it_adopts_itself(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, trust="promoted", refresh_s=0.01) as ops:
        torch.ops.forge.rmsnorm(X, WEIGHT, EPS)
        child = os.fork()
        if child == 0:
            torch.ops.forge.rmsnorm(X, WEIGHT, EPS)
            forked = [line["reason"] for line in ops.report().lines]
            again = adopt(tmp_path, trust="promoted", refresh_s=0)
            torch.ops.forge.rmsnorm(X, WEIGHT, EPS)
            own = [line["backend"] for line in again.report().lines]
            os._exit(0 if "forked" in forked and own == ["source"] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert takes(ops) == "source"


def test_ranks_with_different_generations_refuse():
    require_equal(["a", "a"])
    with pytest.raises(UsageError, match="rank 0 has a, rank 1 has b"):
        require_equal(["a", "b"])


def rank(number: int, folder: str, told) -> None:
    """One of two ranks: the second one's registry is published anew before both refresh."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=2)
    root = f"{folder}/registry_{number}"
    ops = adopt(root, trust="promoted", refresh_s=0.001)
    found = [takes(ops)]
    torch.distributed.barrier()
    other = kernel("rmsnorm", RMSNORM + "# another\n")
    if number:
        publish(Path(root), [other], seq=2)
    torch.distributed.barrier()
    try:
        ops.refresh()
        found.append("agreed")
    except UsageError:
        found.append(ops.explain("rmsnorm", X, WEIGHT)["reason"])
    torch.distributed.barrier()
    if not number:
        publish(Path(root), [other], seq=2)
    ops.refresh()
    told.put((*found, takes(ops)))


def test_two_ranks_take_the_fallback_while_they_see_different_publications(tmp_path):
    for number in (0, 1):
        publish(tmp_path / f"registry_{number}", [kernel("rmsnorm", RMSNORM)])
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    ranks = [context.Process(target=rank, args=(number, str(tmp_path), told)) for number in (0, 1)]
    for one in ranks:
        one.start()
    said = [told.get(timeout=120) for _ in ranks]
    for one in ranks:
        one.join(60)
    assert said == [("source", "ranks", "source")] * 2


def test_a_lone_rank_agrees_with_itself(tmp_path):
    publish(tmp_path / "registry", [kernel("rmsnorm", RMSNORM)])
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/ranks", rank=0, world_size=1)
    try:
        with adopt(tmp_path / "registry", trust="promoted", refresh_s=0) as ops:
            assert not ops.refresh()
    finally:
        torch.distributed.destroy_process_group()


def test_strict_calls_say_that_a_kernel_was_withdrawn(tmp_path):
    publish(tmp_path / "registry", [kernel("rmsnorm", WRONG_RMSNORM)])
    with adopt(tmp_path / "registry", trust="promoted", refresh_s=0, shadow=1.0, strict=True, doubts=tmp_path):
        torch.ops.forge.rmsnorm(X, WEIGHT, EPS)
        with pytest.raises(AdoptionRefused, match="a shadow call differed"):
            torch.ops.forge.rmsnorm(X, WEIGHT, EPS)


def signed_registry(folder, **changes):
    """Publish a registry whose pointer a key signed; return the key in the form that readers take."""
    key = SigningKey(f"test/{LEDGER_ID}", bytes(32))
    publish(folder, [kernel("rmsnorm", RMSNORM)], **changes)
    pointer = json.loads((folder / "current.json").read_bytes())
    at = pointer["ledger"]
    text = publication_text(key.name, seq=at["seq"], event_hash=at["event_hash"], sha256=pointer["sha256"])
    (folder / "current.json").write_text(json.dumps({**pointer, "note": signed_note(text, [key])}))
    return key.verifier


def test_a_handle_that_believes_everything_is_not_given_to_a_caller_who_pins_a_key(tmp_path):
    key = signed_registry(tmp_path)
    with adopt(tmp_path, trust="promoted"), pytest.raises(UsageError, match="adopted in this process already"):
        adopt(tmp_path, trust="promoted", key=key)
    with adopt(tmp_path, trust="promoted", key=key) as ops:
        assert adopt(tmp_path, trust="promoted", key=key) is ops


def test_the_plugin_of_vllm_believes_the_key_of_the_environment_alone(tmp_path, monkeypatch):
    ir = SimpleNamespace(ops=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(ir=ir))
    monkeypatch.setenv("FORGE_REGISTRY", str(tmp_path))
    key = signed_registry(tmp_path)
    for wrong, error in ((SigningKey(f"test/{LEDGER_ID}", bytes([1] * 32)).verifier, ProofRefused), ("", UsageError)):
        monkeypatch.setenv("FORGE_REGISTRY_KEY", wrong)
        with pytest.raises(error):
            vllm.register()
    monkeypatch.setenv("FORGE_REGISTRY_KEY", key)
    with pytest.raises(UsageError, match="this vLLM has none of them"):
        vllm.register()
