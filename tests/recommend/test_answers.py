"""What is made of plans: settings for a server, and models side by side."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from forge.errors import UsageError
from forge.recommend import (
    Constraints,
    Recommendation,
    Recommender,
    Request,
    compare,
    export_config,
)

ROOT = Path(__file__).parents[2]
RECOMMENDER = Recommender(optimization_passes=())


def planned(model: str = "llama3.1-8b", quantization: str = "bf16", **changes):
    limits = Constraints(gpus=("h200",), quantizations=(quantization,), **changes)
    return RECOMMENDER.recommend(Request(model=model, constraints=limits)).recommended


def test_a_plan_is_exported_with_its_own_sizes() -> None:
    plan = planned("llama3.1-70b", max_ttft_ms=60)
    config = export_config(plan, workload="chat")
    assert (config.repository, config.dtype) == ("meta-llama/Llama-3.1-70B-Instruct", "bfloat16")
    assert (config.tensor_parallel_size, config.gpu_count) == (plan.tensor_parallel, plan.gpus)
    assert (config.max_model_len, config.max_num_seqs) == (plan.context_tokens, plan.running_requests)
    assert config.scaling_mode == "always-on"
    line = shlex.join(config.command)
    assert line.startswith("vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size")
    assert f"--max-num-seqs {plan.running_requests}" in line


@pytest.mark.parametrize(
    ("model", "quantization", "argument", "starts"),
    [
        ("llama3.1-8b", "bf16", None, True),
        ("llama3.1-8b", "fp8", "fp8", True),
        ("llama3.1-8b", "int4", None, False),
        ("deepseek-v3", "fp8", None, True),
        ("deepseek-v3", "int4", None, False),
    ],
)
def test_a_command_is_given_only_where_the_named_weights_can_be_served_so(
    model, quantization, argument, starts
) -> None:
    config = export_config(planned(model, quantization), workload="batch")
    assert (config.quantization_argument, config.command is not None) == (argument, starts)
    assert config.scaling_mode == "scale-to-zero"
    assert starts or f"needs a checkpoint in {quantization}" in config.notes[0]


def test_models_are_compared_under_the_same_limits() -> None:
    limits = Constraints(gpus=("h200",), max_ttft_ms=200)
    request = Request(model="llama3.1-8b", constraints=limits, prices={"h200": 3.5})
    found = compare(RECOMMENDER, request, ["llama3.1-8b", "llama3.2-1b", "llama3.1-70b"])
    assert [one.model for one in found.recommendations] == ["llama3.1-8b", "llama3.2-1b", "llama3.1-70b"]
    assert found.fastest.model == found.highest_throughput.model == found.cheapest.model == "llama3.2-1b"
    small = found.recommendations[1].recommended
    assert found.fastest.value == small.latency_ms.value
    assert found.cheapest.value == small.price_per_million_tokens
    assert found.highest_throughput.value == small.throughput_tok_s.value / small.gpus


def test_a_model_without_a_plan_is_named_and_none_is_cheapest_without_prices() -> None:
    request = Request(model="llama3.1-8b", constraints=Constraints(gpus=("l4",), max_gpus=1))
    found = compare(RECOMMENDER, request, ["llama3.1-8b", "llama3.1-405b"])
    assert found.cheapest is None
    assert found.fastest.model == "llama3.1-8b"
    assert "No plan meets the constraints for llama3.1-405b" in found.summary


@pytest.mark.parametrize("models", [["llama3.1-8b"], ["llama3.1-8b"] * 2, ["phi-4"] * 5])
def test_other_than_two_to_four_different_models_are_refused(models) -> None:
    with pytest.raises(UsageError, match="2 to 4 different"):
        compare(RECOMMENDER, Request(model="llama3.1-8b"), models)


def test_an_answer_can_be_written_and_read_again() -> None:
    answer = RECOMMENDER.recommend(Request(model="phi-4", prices={"l4": 0.8}))
    assert Recommendation.model_validate_json(answer.model_dump_json()) == answer


def test_the_recommender_loads_no_torch_and_no_ledger() -> None:
    code = "import sys, forge.recommend; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "triton", "sqlmodel", "sqlalchemy", "numpy"} & set(loaded)


def test_nothing_but_the_command_imports_the_recommender() -> None:
    importing = re.compile(r"^\s*(?:from|import)\s+forge\.recommend\b", re.MULTILINE)
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "forge").rglob("*.py")}
    found = {name for name, text in files.items() if importing.search(text) and "forge/recommend/" not in name}
    assert found == {"forge/app/recommend.py"}


def test_the_command_line_loads_the_recommender_only_when_it_is_asked() -> None:
    code = "import sys, forge.__main__, forge.cli.recommend; print('forge.recommend' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
