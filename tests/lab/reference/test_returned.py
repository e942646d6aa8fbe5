"""What a candidate returns must stand as the reference's results do, and may be an operand where they are."""

from functools import cache
from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.lab.reference.infer import Inferred
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, job_against

pytestmark = pytest.mark.usefixtures("short_series")
FILE = """
import torch


def kernel(x, y):
    return {returned}


def get_inputs():
    return [torch.randn(8, 32), torch.randn(8, 4)]
"""
ONE, SEVERAL = "torch.relu(x)", "torch.relu(x), ({'y': y, 'sums': [x.sum(-1)]},)"


@cache
def frozen(returned: str) -> Inferred:
    return ask(FILE.format(returned=returned))


def test_the_form_of_the_results_and_what_is_an_operand_are_frozen(walls: Walls) -> None:
    assert frozen(ONE).contract.returned == "..."
    several = frozen(SEVERAL).contract
    assert several.returned == "(..., ({'sums': (..., ), 'y': ...}, ), )"
    assert [one.borrowed for one in several.results] == [False, False, True]


@pytest.mark.parametrize(
    "returned",
    [
        SEVERAL,
        "[x.clamp(min=0), [{'sums': (x.sum(-1),), 'y': y}]]",
        "x.relu(), ({'y': y.clone(), 'sums': [x.sum(1)]},)",
        "x.relu(), ({'y': y, 'sums': [torch.stack((x.sum(1), x[:, 0]), 1)[:, 0]]},)",
    ],
    ids=["the reference itself", "lists for tuples", "a copy of the operand", "a column"],
)
def test_results_that_a_caller_reads_alike_are_accepted(returned: str, tmp_path: Path, walls: Walls) -> None:
    job = job_against(frozen(SEVERAL), FILE.format(returned=returned), "kernel")
    assert LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None).verdict == Accepted()


@pytest.mark.parametrize(
    ("reference", "returned", "code"),
    [
        (ONE, "(torch.relu(x),)", "INCORRECT_SHAPE"),
        (ONE, "[[torch.relu(x)]]", "INCORRECT_SHAPE"),
        (ONE, "{'y': torch.relu(x)}", "INCORRECT_SHAPE"),
        (SEVERAL, "torch.relu(x), {'y': y, 'sums': [x.sum(-1)]}", "INCORRECT_SHAPE"),
        (SEVERAL, "torch.relu(x), ({'y': y, 'sums': x.sum(-1)},)", "INCORRECT_SHAPE"),
        (SEVERAL, "x.clamp_(min=0), ({'y': y, 'sums': [x.sum(-1)]},)", "INPUT_MUTATED"),
        (SEVERAL, "torch.relu(x), ({'y': y * 1.01, 'sums': [x.sum(-1)]},)", "INCORRECT_NUMERICAL"),
    ],
)
def test_results_that_stand_otherwise_are_refused(
    reference: str, returned: str, code: str, tmp_path: Path, walls: Walls
) -> None:
    job = job_against(frozen(reference), FILE.format(returned=returned), "kernel")
    examined = LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    assert examined.verdict.reason.code == code
    if code == "INCORRECT_SHAPE":
        assert "OtherFormError" in examined.log or "OtherKeysError" in examined.log


LAZY = """
import torch


class Late(tuple):
    def __getitem__(self, place):
        return torch.zeros(8, 32)


def kernel(x, y):
    return Late((torch.relu(x), x.clone()))
"""


def test_a_tuple_whose_own_code_answers_reads_is_refused(tmp_path: Path, walls: Walls) -> None:
    job = job_against(frozen(COPIES), LAZY, "kernel")
    examined = LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    assert examined.verdict.reason.code == "INCORRECT_SHAPE"
    assert "a Late with a __getitem__ of its own" in examined.log


COPIES = "torch.relu(x), x.clone()"


def test_an_operand_in_place_of_a_copy_is_refused(tmp_path: Path, walls: Walls) -> None:
    job = job_against(frozen(COPIES), FILE.format(returned="torch.relu(x), x"), "kernel")
    verdict = LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None).verdict
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "STATE_CARRIED"


KEPT = """
import torch

KEPT = {}


def kernel(x, y):
    kept = KEPT.setdefault(x.shape, torch.empty_like(x))
    kept.copy_(x)
    return torch.relu(x), kept
"""


def test_memory_that_each_call_overwrites_is_no_operand(tmp_path: Path, walls: Walls) -> None:
    job = job_against(frozen("torch.relu(x), x"), KEPT, "kernel")
    verdict = LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None).verdict
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "STATE_CARRIED"
