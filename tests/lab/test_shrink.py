"""A failing case is made small by asking the live candidate, and the verdict never changes by it."""

import subprocess
import sys
from pathlib import Path

import pytest

from forge.domain.evidence import Counterexample
from forge.domain.verdict import Rejected
from forge.lab.counterexample import shrink
from forge.lab.verification import Examination, examine
from tests.candidates import EXAMPLES, job_for

WIDE = {"batch": 8, "hidden_size": 512}
RIGHT = """
def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
"""
FORGETS_A_TAIL = f"""{RIGHT}
def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    y[:, x.shape[1] // 8 * 8:] = 7
    return y, h
"""
WRONG_FROM_ELEVEN = f"""{RIGHT}
def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y * 1.5 if x.shape[1] > 10 else y), h
"""
WRONG_ONLY_FOR_LARGE_VALUES = f"""{RIGHT}
def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y * 1.5 if (x.abs() > 100).any() else y), h
"""
DIES_WHEN_ASKED_SMALL = f"""{RIGHT}
import os


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[0] == 8:
        return y * 1.5, h
    os.abort()
"""
HANGS_WHEN_ASKED_SMALL = DIES_WHEN_ASKED_SMALL.replace("os.abort()", "while True: pass")


def judged(kernel: str, *, language: str = "torch", limit_s: float = 120.0) -> tuple[Examination, Counterexample]:
    job = job_for(kernel, language=language, shape=WIDE, limit_s=limit_s)
    examined = examine(job, progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected), examined
    assert examined.counterexample is not None, examined
    return examined, examined.counterexample


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the number of questions alone end a search: a busy machine answers fewer of them in seconds."""
    monkeypatch.setattr(shrink, "BUDGET_S", 600.0)
    monkeypatch.setattr(shrink, "REPLY_S", 10.0)


@pytest.mark.usefixtures("walls")
def test_a_forgotten_tail_is_shown_at_one_element_with_its_values(tmp_path: Path) -> None:
    examined, smallest = judged(FORGETS_A_TAIL)
    assert examined.gates[-1].name == "numerics"
    assert examined.verdict.reason.code == "INCORRECT_NUMERICAL"  # type: ignore[union-attr]  # rejected, as asserted
    assert smallest.shape == {"batch": 1, "hidden_size": 1}
    assert smallest.inputs == "zeros"
    assert smallest.expected_values is not None
    assert smallest.expected_values.values == ("0",)
    assert smallest.got_values is not None
    assert smallest.got_values.values == ("7",)
    assert [one.name for one in smallest.operands] == ["x", "residual", "weight"]
    assert "forge" not in smallest.snippet
    (tmp_path / "kernel.py").write_text(FORGETS_A_TAIL)
    (tmp_path / "case.py").write_text(smallest.snippet)
    done = subprocess.run([sys.executable, "case.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("7.0 expected 0.0 within")


@pytest.mark.usefixtures("walls")
def test_the_smallest_shape_is_found_where_only_large_ones_fail() -> None:
    _, smallest = judged(WRONG_FROM_ELEVEN)
    assert smallest.shape == {"batch": 1, "hidden_size": 11}
    assert smallest.inputs == "ones"
    assert smallest.shrunk_from == WIDE
    assert len(smallest.operands[0].values) == 11


@pytest.mark.usefixtures("walls")
def test_values_stay_as_drawn_where_simpler_ones_dont_fail() -> None:
    _, smallest = judged(WRONG_ONLY_FOR_LARGE_VALUES)
    assert smallest.inputs == "large"
    assert smallest.shape == {"batch": 1, "hidden_size": 1}
    assert smallest.seed is not None


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("kernel", [DIES_WHEN_ASKED_SMALL, HANGS_WHEN_ASKED_SMALL], ids=["dies", "hangs"])
def test_a_guest_that_is_lost_while_shrinking_leaves_the_verdict_and_the_first_case(kernel: str) -> None:
    examined, first = judged(kernel, limit_s=20.0)
    assert examined.verdict.reason.code == "INCORRECT_NUMERICAL"  # type: ignore[union-attr]  # rejected, as asserted
    assert examined.gates[-1].name == "signature"
    assert first.shape == WIDE
    assert first.shrunk_from is None
    assert "forge.lab.inputs.draw" in first.snippet


@pytest.mark.usefixtures("walls")
def test_nothing_is_left_where_the_command_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    judged(FORGETS_A_TAIL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("walls")
def test_the_shipped_example_is_shrunk_to_one_column() -> None:
    _, smallest = judged((EXAMPLES / "odd_sizes" / "kernel.py").read_text(), language="cpp")
    assert smallest.shape == {"batch": 1, "hidden_size": 1}
    assert smallest.output == "y"
