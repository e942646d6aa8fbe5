"""Which kernel answers, which never does, and what a reader sees when the published files are damaged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.domain.digest import canonical, sha256
from forge.errors import BlobCorrupt, IntegrityError, UnknownName, UsageError, WorkspaceNotFound
from forge.events.environment import EnvironmentCaptured
from forge.lookup import Policy, Registry
from forge.projections.files import put
from tests.projections.histories import (
    LEDGER_ID,
    History,
    benchmarked,
    deprecate,
    invalidate,
    opened,
    promoted,
    rebuild,
    revoke,
)
from tests.projections.histories import grown_by as grow
from tests.projections.test_catch_up import ACTS
from tests.projections.values import EDGES, SHAPE, captured, environment, task

ASK = {"op": "rmsnorm", "gpu": "h200", "dtype": "bf16", "shape": SHAPE}
BETWEEN = {"batch": 20, "hidden_size": 5000}
OUTSIDE = {"batch": 65, "hidden_size": 4096}


def published(history: History, workspace: Path) -> Registry:
    put(workspace / "kernel_registry", rebuild(history.events, history.head, LEDGER_ID))
    return Registry.open(workspace)


@pytest.fixture
def history() -> History:
    return opened()


def test_an_exact_answer_brings_its_bytes_and_its_evidence(history, tmp_path):
    run = benchmarked(history)
    kernel_id = run.promote()
    found = published(history, tmp_path).lookup(**ASK)
    assert (found.match, found.kernel.kernel_id, found.kernel.language) == ("exact", kernel_id, "triton")
    assert found.kernel.source_path == str(tmp_path / "kernel_registry" / "kernels" / kernel_id / "kernel.py")
    assert found.kernel.sha256 == run.candidate.files[0].sha256
    assert found.kernel.entry_point == "rmsnorm"
    evidence = found.evidence
    assert (evidence.shape, evidence.distance, evidence.median_ns) == (SHAPE, 0.0, 1000.0)
    assert (evidence.baseline, evidence.baseline_median_ns, evidence.speedup) == ("eager", 1500.0, 1.5)
    assert evidence.low < evidence.speedup < evidence.high
    assert evidence.abi_key == environment().abi_key
    assert (evidence.verified_seq, evidence.benchmark_seq) == (run.verified_seq, run.benchmark_seq)
    assert history.events[evidence.promoted_seq - 1].event.kernel_id == kernel_id
    assert found.rejected == []


def test_a_verified_shape_that_was_not_measured_is_covered_by_the_nearest_point(history, tmp_path):
    promoted(history, shapes=EDGES, also=(EDGES[0],))
    found = published(history, tmp_path).lookup(**{**ASK, "shape": EDGES[2]})
    assert (found.match, found.evidence.shape, found.evidence.distance) == ("covered", SHAPE, 3.0)


def test_a_shape_between_verified_ones_is_answered_only_if_the_policy_allows(history, tmp_path):
    kernel_id = promoted(history, shapes=EDGES)
    registry = published(history, tmp_path)
    asked = {**ASK, "shape": BETWEEN}
    refused = registry.lookup(**asked)
    assert (refused.match, refused.kernel, refused.evidence) == ("none", None, None)
    assert refused.rejected == [(kernel_id, "shape is only nearest, the policy asks for covered")]
    assert registry.lookup(**asked, policy=Policy(shape="nearest")).match == "nearest"
    near = Policy(shape="nearest", max_octaves=0.1)
    assert registry.lookup(**asked, policy=near).rejected[0][1].startswith("nearest measured shape")


@pytest.mark.parametrize(
    "shape",
    [OUTSIDE, {"batch": 16, "hidden_size": 1022}, {"batch": 16}, {"batch": 16, "hidden_size": 4096, "x": 1}],
)
def test_a_shape_outside_the_verified_domain_is_never_answered(history, tmp_path, shape):
    promoted(history, shapes=EDGES)
    found = published(history, tmp_path).lookup(**{**ASK, "shape": shape}, policy=Policy(shape="nearest"))
    assert found.match == "none"
    assert found.rejected[0][1].startswith("shape")


def test_exact_beats_covered_beats_nearest_whatever_the_times(history, tmp_path):
    measured = promoted(history, name="a", median_ns=9000.0, shapes=())
    other = task(shape={"batch": 64, "hidden_size": 8192})
    promoted(history, name="b", wanted=other, median_ns=10.0, shapes=(SHAPE,))
    promoted(history, name="c", wanted=other, median_ns=1.0, shapes=({"batch": 1, "hidden_size": 1},))
    found = published(history, tmp_path).lookup(**ASK, policy=Policy(shape="nearest"))
    assert (found.match, found.kernel.kernel_id) == ("exact", measured)
    assert {reason for _, reason in found.rejected} == {f"{measured} is the better match"}


def test_the_highest_version_is_not_automatically_the_best(history, tmp_path):
    fast = promoted(history, name="a", median_ns=500.0)
    promoted(history, name="b", median_ns=600.0)
    assert published(history, tmp_path).lookup(**ASK).kernel.kernel_id == fast


def test_equal_times_go_by_kernel_id(history, tmp_path):
    first = promoted(history, name="a")
    promoted(history, name="b")
    assert published(history, tmp_path).lookup(**ASK).kernel.kernel_id == first


def test_the_nearer_measurement_wins_before_the_lower_time(history, tmp_path):
    asked, near, far = ({"batch": 16, "hidden_size": size} for size in (1000, 2000, 8000))
    nearer = promoted(history, name="a", wanted=task(shape=near), shapes=(asked,), median_ns=900.0)
    promoted(history, name="b", wanted=task(shape=far), shapes=(asked,), median_ns=100.0)
    found = published(history, tmp_path).lookup(**{**ASK, "shape": asked})
    assert (found.match, found.kernel.kernel_id, found.evidence.distance) == ("covered", nearer, 1.0)


def test_a_language_can_be_asked_for(history, tmp_path):
    promoted(history, name="a", median_ns=1.0)
    cpp = promoted(history, name="b", wanted=task(language="cpp"))
    registry = published(history, tmp_path)
    found = registry.lookup(**ASK, language="cpp")
    assert found.kernel.kernel_id == cpp
    assert [reason for _, reason in found.rejected] == ["language triton, asked cpp"]
    assert registry.lookup(**ASK, language="torch").match == "none"


def test_another_gpu_answers_only_as_family_of_the_same_architecture(history, tmp_path):
    hopper = promoted(history, wanted=task(gpu="h100"))
    ada = promoted(history, wanted=task(gpu="rtx4070"))
    history.add(captured("h200"))
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK).match == "none"
    found = registry.lookup(**ASK, policy=Policy(gpu="family"))
    assert (found.match, found.kernel.kernel_id, found.kernel.gpu) == ("family", hopper, "h100")
    assert found.rejected == [(ada, "gpu rtx4070 of architecture sm_89, asked h200 of sm_90")]


def test_the_architecture_of_a_gpu_never_seen_is_the_callers_to_say(history, tmp_path):
    promoted(history, wanted=task(gpu="h100"))
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK, policy=Policy(gpu="family")).match == "none"
    assert registry.lookup(**ASK, policy=Policy(gpu="family", gpu_arch="sm_90")).match == "family"


def test_two_unknown_architectures_are_not_the_same(history, tmp_path):
    promoted(history, wanted=task(gpu="h100"))
    found = environment("h100")
    other = found.model_copy(update={"gpu": found.gpu.model_copy(update={"arch": "sm_91"})})
    digests = {"env_sha256": other.env_sha256, "perf_key": other.perf_key, "abi_key": other.abi_key}
    history.add(EnvironmentCaptured(environment=other, **digests))
    answer = published(history, tmp_path).lookup(**ASK, policy=Policy(gpu="family"))
    assert answer.match == "none"
    assert answer.rejected[0][1] == "gpu h100 of architecture None, asked h200 of None"


def test_the_asked_gpu_comes_before_its_family(history, tmp_path):
    promoted(history, wanted=task(gpu="h100"), median_ns=1.0)
    own = promoted(history, shapes=(*EDGES, BETWEEN))
    found = published(history, tmp_path).lookup(**{**ASK, "shape": BETWEEN}, policy=Policy(gpu="family"))
    assert (found.match, found.kernel.kernel_id) == ("covered", own)


def test_a_gpu_may_be_asked_for_by_its_market_name(history, tmp_path):
    promoted(history, wanted=task(gpu="rtx4070"))
    assert published(history, tmp_path).lookup(**{**ASK, "gpu": "RTX 4070"}).match == "exact"


def test_a_revoked_kernel_is_never_returned(history, tmp_path):
    kernel_id = promoted(history)
    revoke(history, kernel_id)
    policy = Policy(shape="nearest", gpu="family", deprecated=True)
    found = published(history, tmp_path).lookup(**ASK, policy=policy)
    assert found.match == "none"
    assert found.rejected == [(kernel_id, "revoked: wrong_result: off by one")]


def test_a_kernel_whose_benchmark_was_withdrawn_is_never_returned(history, tmp_path):
    run = benchmarked(history)
    kernel_id = run.promote()
    invalidate(history, run.benchmark_seq)
    found = published(history, tmp_path).lookup(**ASK, policy=Policy(deprecated=True))
    assert found.rejected == [(kernel_id, "evidence_invalid: clock was wrong")]


def test_a_deprecated_kernel_answers_only_if_allowed_and_nothing_else_does(history, tmp_path):
    old = promoted(history, name="a", median_ns=1.0)
    deprecate(history, old)
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK).rejected == [(old, "deprecated: a better one")]
    assert registry.lookup(**ASK, policy=Policy(deprecated=True)).kernel.kernel_id == old
    new = promoted(history, name="b", median_ns=1000.0, wanted=task(shape=EDGES[2]), shapes=(SHAPE,))
    registry = published(history, tmp_path)
    found = registry.lookup(**ASK, policy=Policy(deprecated=True))
    assert (found.match, found.kernel.kernel_id) == ("covered", new)


def test_a_kernel_built_for_another_machine_can_be_passed_over(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK, policy=Policy(abi_key=environment().abi_key)).match == "exact"
    assert registry.lookup(**ASK, policy=Policy(abi_key="0" * 64)).match == "none"


POLICIES = st.builds(
    Policy,
    shape=st.sampled_from(["exact", "covered", "nearest"]),
    gpu=st.sampled_from(["exact", "family"]),
    deprecated=st.booleans(),
)


@settings(max_examples=50, deadline=None)
@given(
    acts=st.lists(ACTS, max_size=8),
    op=st.sampled_from(["rmsnorm", "softmax", "gelu"]),
    gpu=st.sampled_from(["h200", "h100"]),
    dtype=st.sampled_from(["bf16", "fp16"]),
    shape=st.sampled_from([SHAPE, *EDGES, BETWEEN, OUTSIDE]),
    policy=POLICIES,
)
def test_no_lookup_returns_a_kernel_of_another_slot_revoked_or_outside_its_verified_domain(
    tmp_path_factory, acts, op, gpu, dtype, shape, policy
):
    history = opened()
    for act, choice in acts:
        grow(history, act, choice)
    workspace = tmp_path_factory.mktemp("workspace")
    files = rebuild(history.events, history.head, LEDGER_ID)
    put(workspace, files)
    registry = Registry.open(workspace)
    found = registry.lookup(op=op, gpu=gpu, dtype=dtype, shape=shape, policy=policy)
    again = registry.lookup(op=op, gpu=gpu, dtype=dtype, shape=shape, policy=policy)
    assert (again.match, again.rejected) == (found.match, found.rejected)
    entries = json.loads(files["verified_kernels.json"])["kernels"]
    same_op = {entry["kernel_id"] for entry in entries if entry["op"] == op}
    answered = {found.kernel.kernel_id} if found.kernel else set()
    assert {kernel_id for kernel_id, _ in found.rejected} == same_op - answered
    assert (found.match == "none") == (not answered)
    for entry in entries:
        if entry["kernel_id"] in answered:
            assert (entry["op"], entry["dtype"]) == (op, dtype)
            assert entry["target_gpu"] == gpu or (policy.gpu == "family" and found.match == "family")
            assert entry["status"] == "active" or (policy.deprecated and entry["status"] == "deprecated")
            verified = entry["coverage"]["verified"]
            assert shape in verified or policy.shape == "nearest"
            for axis, size in shape.items():
                assert min(at[axis] for at in verified) <= size <= max(at[axis] for at in verified)


@pytest.mark.parametrize("below", ["", "kernel_registry", "kernel_registry/current.json"])
def test_a_registry_opens_by_workspace_directory_or_pointer(history, tmp_path, below):
    promoted(history)
    published(history, tmp_path)
    assert Registry.open(tmp_path / below).lookup(**ASK).match == "exact"


def test_nothing_published_is_said_so(tmp_path):
    with pytest.raises(WorkspaceNotFound, match="no published registry"):
        Registry.open(tmp_path)


def damage_snapshot(directory: Path) -> None:
    (snapshot,) = directory.glob("lookup-*.json")
    content = snapshot.read_bytes()
    snapshot.chmod(0o644)
    snapshot.write_bytes(content.replace(b"eager", b"eagle"))


def lose_snapshot(directory: Path) -> None:
    (snapshot,) = directory.glob("lookup-*.json")
    snapshot.unlink()


def truncate_pointer(directory: Path) -> None:
    pointer = directory / "current.json"
    pointer.write_bytes(pointer.read_bytes()[:40])


def misname_snapshot(directory: Path) -> None:
    pointer = directory / "current.json"
    pointer.write_bytes(canonical({**json.loads(pointer.read_bytes()), "snapshot": "../elsewhere.json"}))


def empty_pointer(directory: Path) -> None:
    (directory / "current.json").write_bytes(b"[]")


DAMAGES = [damage_snapshot, lose_snapshot, truncate_pointer, misname_snapshot, empty_pointer]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_publication_does_not_open(history, tmp_path, damage):
    promoted(history)
    published(history, tmp_path)
    damage(tmp_path / "kernel_registry")
    with pytest.raises(BlobCorrupt):
        Registry.open(tmp_path)


def test_a_snapshot_of_a_newer_schema_is_refused(tmp_path):
    content = canonical({"schema_version": 2, "kernels": [], "gpus": {}})
    name = f"lookup-{sha256(content)[:12]}.json"
    ledger = {"ledger_id": "l", "seq": 1, "event_hash": "h"}
    pointer = {"schema_version": 1, "snapshot": name, "sha256": sha256(content), "ledger": ledger}
    put(tmp_path, {name: content, "current.json": canonical(pointer)})
    with pytest.raises(IntegrityError, match="schema 2"):
        Registry.open(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_failed_refresh_keeps_the_last_good_generation_and_health_says_so(history, tmp_path, damage):
    first = promoted(history, name="a")
    registry = published(history, tmp_path)
    good = registry.health()
    assert (good.ok, good.error, good.kernels, good.ledger_seq) == (True, None, 1, history.head.seq)
    revoke(history, first)
    (tmp_path / "kernel_registry").joinpath(f"lookup-{good.generation[:12]}.json").unlink()
    published(history, tmp_path)
    damage(tmp_path / "kernel_registry")
    assert not registry.refresh()
    assert registry.lookup(**ASK).kernel.kernel_id == first
    bad = registry.health()
    assert (bad.ok, bad.generation) == (False, good.generation)
    assert bad.error
    (tmp_path / "kernel_registry" / "current.json").unlink()
    published(history, tmp_path)
    assert registry.refresh()
    assert registry.health().ok
    assert registry.lookup(**ASK).match == "none"


def test_refreshing_an_unchanged_registry_changes_nothing(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    assert not registry.refresh()
    assert registry.health().ok


def test_the_source_is_checked_when_it_is_read(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    kernel = registry.lookup(**ASK).kernel
    with pytest.raises(BlobCorrupt, match="can't be read"):
        kernel.read_source()
    source = Path(kernel.source_path)
    source.parent.mkdir(parents=True)
    source.write_bytes(b"pass")
    with pytest.raises(BlobCorrupt, match="has digest"):
        kernel.read_source()


@pytest.mark.parametrize("shape", [{}, {"batch": 16.0}, {"batch": "16"}, {"batch": -1}, {"batch": True}])
def test_a_shape_that_is_none_is_refused(history, tmp_path, shape):
    promoted(history)
    with pytest.raises(UsageError, match="bad shape"):
        published(history, tmp_path).lookup(**{**ASK, "shape": shape})


def test_a_misspelt_policy_is_refused():
    for bad in ({"shape": "close"}, {"gpu": "any"}):
        with pytest.raises(UnknownName):
            Policy(**bad)


def test_importing_and_asking_loads_the_standard_library_only(history, tmp_path):
    promoted(history)
    published(history, tmp_path)
    code = (
        "import sys; from forge.lookup import Registry; light = set(sys.modules)\n"
        "slot = {'op': 'rmsnorm', 'gpu': 'h200', 'dtype': 'bf16', 'shape': {'batch': 1}}\n"
        "Registry.open(sys.argv[1]).lookup(**slot).rejected\n"
        "heavy = {'torch', 'numpy', 'sqlmodel', 'sqlalchemy', 'pydantic', 'typer', 'orjson'}\n"
        "lazy = {'json', 'hashlib', 'dataclasses', 'typing', 'collections', 'math'}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(lazy & light))\n"
    )
    command = [sys.executable, "-S", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[1])
    assert done.stdout == b"[] []\n", done.stderr
