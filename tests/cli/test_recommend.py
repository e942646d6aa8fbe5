"""`forge recommend`: a table or one document, the exit status that fits, and the next thing to try."""

import json
from pathlib import Path

import pytest

from forge.cli.recommend import kernel_rows
from forge.projections.files import put
from tests.cli.asking import ask
from tests.projections.histories import LEDGER_ID, opened, promoted, rebuild

MODEL = ("recommend", "--model", "llama3.1-8b", "--gpu", "h200")


def test_plans_are_shown_with_what_they_rest_on_and_how_to_start_them(tmp_path: Path) -> None:
    answer = ask(*MODEL, "--home", tmp_path)
    assert answer.status == 0
    assert "NVIDIA H200" in answer.out
    assert "estimated" in answer.out
    assert "note: no prices were given" in answer.err
    assert "at best" in answer.last


def test_one_document_holds_the_plans_the_request_and_the_settings(tmp_path: Path) -> None:
    prices = ("--price", "h200=3.5", "--priority", "cost", "--max-ttft-ms", "500")
    document = ask(*MODEL, *prices, "--home", tmp_path, "--json").document
    assert document["recommended"] == 1
    first = document["plans"][0]
    assert first["price_per_hour"] == 3.5 * first["gpus"]
    assert first["scores"]["meets_latency"] is True
    assert document["request"]["constraints"]["max_ttft_ms"] == 500
    assert document["config"]["tensor_parallel_size"] == first["tensor_parallel"]


def test_where_no_plan_meets_the_limits_the_nearest_is_shown_and_the_status_is_1(tmp_path: Path) -> None:
    answer = ask(*MODEL, "--max-ttft-ms", "0.1", "--home", tmp_path)
    assert answer.status == 1
    assert "1 misses" in answer.out
    assert "No plan for llama3.1-8b meets the constraints. The nearest is" in answer.err
    assert answer.last == "try: forge recommend --help"
    document = ask(*MODEL, "--max-ttft-ms", "0.1", "--home", tmp_path, "--json").document
    assert (document["recommended"], document["config"]) == (None, None)
    assert document["plans"][0]["checks"][0]["met"] is False


def test_several_models_are_compared(tmp_path: Path) -> None:
    document = ask(*MODEL, "--model", "qwen2.5-7b", "--home", tmp_path, "--json").document
    assert [one["model"] for one in document["models"]] == ["llama3.1-8b", "qwen2.5-7b"]
    assert document["fastest"]["basis"] == "estimated"


def test_measured_profiles_are_read_from_a_file(tmp_path: Path) -> None:
    measured = {"model": "llama3.1-8b", "gpu": "h200", "backend": "vllm", "quantization": "bf16"}
    measured |= {"prompt_tokens": 1024, "output_tokens": 256, "concurrency": 16, "measured_by": "us"}
    measured |= {"ttft_ms_p50": 20.0, "tpot_ms_p50": 5.0, "throughput_tok_s": 3000.0}
    path = tmp_path / "profiles.json"
    path.write_text(json.dumps([measured]), encoding="utf-8")
    only = ("--max-gpus", "1", "--quantization", "bf16", "--backend", "vllm", "--profile", path)
    (plan,) = ask(*MODEL, *only, "--home", tmp_path, "--json").document["plans"]
    assert (plan["benchmark_source"], plan["throughput_tok_s"]["value"]) == ("measured", 3000.0)


BAD = {
    "unknown model": (("--model", "llama4-999b"), "unknown model"),
    "unknown gpu": (("--gpu", "h2000"), "unknown gpu 'h2000'"),
    "unknown workload": (("--workload", "talk"), "workload 'talk': expected"),
    "unknown priority": (("--priority", "beauty"), "priority 'beauty': expected"),
    "unknown backend": (("--backend", "magic"), "'magic': expected"),
    "negative limit": (("--max-ttft-ms", "-1"), "constraints.max_ttft_ms -1.0: expected"),
    "no number": (("--max-tpot-ms", "nan"), "expected"),
    "no gpus": (("--max-gpus", "0"), "constraints.max_gpus 0: expected"),
    "price of nothing": (("--price", "h200=0"), "price '0'"),
    "price of next to nothing": (("--price", "h200=1e-320"), "price '1e-320'"),
    "profiles without end": (("--profile", "/dev/zero"), "no plain file"),
    "price of an unknown gpu": (("--price", "voodoo2=1"), "unknown gpu 'voodoo2'"),
    "cost without prices": (("--priority", "cost"), "--price"),
    "profiles that aren't there": (("--profile", "/nowhere/p.json"), "can't be read"),
    "the same model twice": (("--model", "llama3.1-8b"), "different"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_can_not_be_answered_is_bad_input(case: str, tmp_path: Path) -> None:
    arguments, said = BAD[case]
    answer = ask(*MODEL, *arguments, "--home", tmp_path, "--json")
    assert (answer.status, answer.document.keys()) == (2, {"error"})
    assert said in answer.error
    assert "expected" in answer.error
    assert answer.last == "try: forge recommend --help"


def test_kernels_of_the_workspaces_registry_are_shown_as_opportunities(tmp_path: Path) -> None:
    history = opened()
    kernel_id = promoted(history)
    put(tmp_path / "kernel_registry", rebuild(history.events, history.head, LEDGER_ID))
    answer = ask(*MODEL, "--home", tmp_path)
    assert "measured alone, not applied, not counted above" in answer.out
    assert kernel_id in answer.out
    assert "1.500x [" in answer.out
    first = ask(*MODEL, "--home", tmp_path, "--json").document["plans"][0]["kernel_optimizations"][0]
    assert (first["kernel_id"], first["available"], first["applied"]) == (kernel_id, True, False)
    assert (first["evidence_level"], first["benchmark_scope"]) == ("op_level", "microbenchmark")


def test_a_kernel_is_shown_at_each_shape_with_the_plans_that_ask_for_it() -> None:
    measured = {
        "kernel_id": "k",
        "speedup": 1.1213,
        "speedup_low": 1.1196,
        "speedup_high": 1.123,
        "baseline": "compile",
    }
    one, other = ({**measured, "shape": {"heads": 32}, "model_shape": {"heads": heads}} for heads in (32, 16))
    plans = [{"rank": rank, "kernel_optimizations": [ask]} for rank, ask in enumerate((one, one, other), start=1)]
    alike = ("k", "1.121x [1.120, 1.123]", "compile", "heads=32")
    assert kernel_rows(plans) == [(*alike, "heads=32", "1, 2"), (*alike, "heads=16", "3")]


def test_a_price_for_nothing_and_a_gpu_without_a_plan_are_named(tmp_path: Path) -> None:
    answer = ask(*MODEL, "--gpu", "l40s", "--price", "l4=0.5", "--home", tmp_path)
    assert "note: the price of l4 isn't used: no plan that was considered has this GPU" in answer.err
    assert "note: the best plan with l40s is number " in answer.err
    assert "L40S" not in answer.out
    many = ask(*MODEL, "--gpu", "l40s", "--limit", "1000", "--home", tmp_path)
    assert "L40S" in many.out
    assert "l40s" not in many.err


def test_why_a_named_gpu_has_no_plan_is_said(tmp_path: Path) -> None:
    small = ask("recommend", "--model", "llama3.1-405b", "--gpu", "l4", "--gpu", "h200", "--home", tmp_path)
    assert "note: no plan with l4: " in small.err
    slow = ask(*MODEL, "--gpu", "l4", "--max-tpot-ms", "2", "--home", tmp_path)
    assert "note: no plan with l4 meets the constraints" in slow.err


def test_the_number_of_plans_is_the_users(tmp_path: Path) -> None:
    for limit in (1, 6):
        document = ask(*MODEL, "--limit", limit, "--home", tmp_path, "--json").document
        assert len(document["plans"]) == limit
    assert len(ask(*MODEL, "--home", tmp_path, "--json").document["plans"]) == 4
