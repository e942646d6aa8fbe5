"""What is missing or broken is refused: a misspelt name, an empty list, NaN, silence, a crash, a reply cut off.

Each case ends a whole question with a refusal. The guests are real processes, and a candidate is judged by all gates.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from forge.domain.evidence import Interval
from forge.domain.policy import Policy
from forge.domain.tensors import parse_dtype, parse_shape
from forge.errors import ForgeError
from forge.events import parse_event
from forge.lab.calls.configurations import Configurations, parse_configurations
from forge.lab.profile.operators import parse_operators
from forge.lab.reference.describe import SubmittedReference, parse_description
from forge.lab.verification import examine
from forge.languages import find_language
from forge.operations import find_operation
from forge.pipeline.skills import embedded_skills, find_skill
from forge.platforms import find_processor
from forge.sandbox.reply import parse_artifact
from tests.candidates import job_for

GOLDEN = Path(__file__).parents[1] / "events" / "golden"
KERNEL = """
import os

import torch


def softmax(x):
    {before}
    answer = torch.softmax(x, -1)
    {after}
    return answer
"""
"""A right kernel, with a line before its answer and one after it."""


def refusal(before: str = "pass", after: str = "pass", *, limit_s: float = 120.0) -> str:
    """Judge the kernel with these lines; return the reason of its refusal, or `accepted`."""
    job = job_for(
        KERNEL.format(before=before, after=after),
        language="torch",
        operation="softmax",
        shape={"batch": 4, "hidden_size": 32},
        limit_s=limit_s,
    )
    verdict = examine(job, progress=lambda _: None).verdict
    return "accepted" if verdict.verdict == "accepted" else verdict.reason.code


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda: find_operation("sofmax"), id="operation"),
        pytest.param(lambda: find_language("tritn"), id="language"),
        pytest.param(lambda: find_processor("h20O"), id="processor"),
        pytest.param(lambda: parse_dtype("fp23"), id="element type"),
        pytest.param(lambda: parse_shape("bach=1", ("batch",)), id="axis"),
        pytest.param(lambda: find_skill(embedded_skills(), "playbook.tritn"), id="skill"),
        pytest.param(lambda: Policy.model_validate({"sanitiser": False}), id="setting"),
        pytest.param(lambda: Policy.model_validate({"baselines": ["eagr"]}), id="baseline"),
    ],
)
def test_a_misspelt_name_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises((ForgeError, ValidationError)):
        ask()


@pytest.mark.parametrize(
    ("name", "version", "field"),
    [
        ("CandidateVerified", 3, "gates"),
        ("CandidateVerified", 3, "workloads"),
        ("CandidateVerified", 3, "shapes_verified"),
        ("BenchmarkRecorded", 2, "workloads"),
        ("KernelPromoted", 1, "gates"),
    ],
)
def test_evidence_with_an_empty_list_is_refused(name: str, version: int, field: str) -> None:
    payload = json.loads((GOLDEN / f"{name}.v{version}.json").read_text())
    assert payload[field]
    parse_event(name, version, json.dumps(payload))
    with pytest.raises(ForgeError):
        parse_event(name, version, json.dumps({**payload, field: []}))


@pytest.mark.parametrize("field", ["baselines", "regimes"])
def test_a_policy_with_an_empty_list_is_refused(field: str) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({field: []})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_measurement_of_nan_or_infinity_is_refused(bad: float) -> None:
    with pytest.raises(ValidationError):
        Interval(ratio=bad, low=1.0, high=1.0)


@pytest.mark.usefixtures("walls", "short_series")
def test_an_answer_with_one_nan_is_refused() -> None:
    assert refusal(after="answer[-1, -1] = float('nan')") == "NON_FINITE"


@pytest.mark.usefixtures("walls", "short_series")
def test_a_call_without_an_end_is_refused() -> None:
    assert refusal(before="while True: pass", limit_s=4.0) == "TIMEOUT"


@pytest.mark.usefixtures("walls", "short_series")
@pytest.mark.parametrize(
    "crash", ["os._exit(0)", "os.abort()", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)"]
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_crash_in_a_call_is_refused(place: str, crash: str) -> None:
    assert refusal(**{place: crash}) == "RUNTIME_ERROR"


DESCRIBED = {
    "form": "function",
    "entry": "kernel",
    "init": "[]",
    "arguments": [{"name": "x", "literal": None, "dtype": "float32", "sizes": [4, 8]}],
    "states": [],
    "results": [{"dtype": "float32", "sizes": [4, 8]}],
    "generator": True,
    "returned": "...",
}
OPERATOR = {"name": "aten::add", "calls": 1, "self_ns": 5.0, "device_ns": 0.0}
ANSWERS: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "a reference's description": (
        json.dumps(DESCRIBED).encode(),
        lambda said: parse_description(SubmittedReference(source=b"", name="f", dtype="fp32"), said, Policy()),
    ),
    "the configurations of a kernel": (
        Configurations(most=2, configurations=()).model_dump_json().encode(),
        parse_configurations,
    ),
    "a profiler's table": (json.dumps([OPERATOR]).encode(), parse_operators),
    "built files": (b"\0\0\0\1" + b"kernel.so".ljust(64, b"\0") + b"\0" * 7 + b"\4" + b"\x7fELF", parse_artifact),
}
"""What a guest hands over in the arena, whole, and the host's reader of it."""


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_that_is_cut_off_anywhere_is_refused(what: str) -> None:
    whole, read = ANSWERS[what]
    read(whole)
    for length in range(len(whole)):
        with pytest.raises((ForgeError, ValueError)):
            read(whole[:length])
