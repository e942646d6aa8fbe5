"""Answers that are judged after their windows: the first wrong one is found, with its side, wherever it waits."""

from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest
import torch

from forge.domain.input_kind import InputKind
from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.observed import Observed
from forge.lab.timing import judged_later
from forge.lab.timing.judged_later import JudgedLater
from forge.sandbox.arena import Arena
from forge.sandbox.session import Session
from tests.candidates import job_for

JOB = job_for("", language="torch", operation="softmax", shape={"batch": 4, "hidden_size": 32})


@pytest.fixture(scope="module")
def kernel() -> Iterator[LoadedKernel]:
    """A kernel whose answers the tests give, so that no guest is asked."""
    with closing(Arena(2**20)) as arena:
        asked = AskedOperation(operation=JOB.operation, shape=JOB.shape, dtype="fp32", policy=JOB.policy)
        yield LoadedKernel(LoadedGuest(cast(Session, None), arena, "softmax"), asked)


def answered(kernel: LoadedKernel, kind: InputKind = "normal", *, off: float = 0.0) -> Observed:
    case = kernel.case(kernel.shape, kind)
    answer = torch.softmax(case.inputs[0].double(), -1).float()
    answer[1, 3] += off
    return Observed(case, (answer,), 1)


@pytest.mark.parametrize("side_by_side", [True, False])
@pytest.mark.parametrize("kind", ["normal", "large"])
@pytest.mark.parametrize("place", [0, 7, 19])
def test_one_wrong_answer_is_found_among_right_ones(
    kernel: LoadedKernel, place: int, kind: InputKind, side_by_side: bool
) -> None:
    later = JudgedLater(side_by_side=side_by_side)
    for number in range(20):
        side = "promoted" if number % 2 else "candidate"
        assert later.add(side, kernel, [answered(kernel, kind, off=0.25 if number == place else 0.0)]) is None
    wrong = later.judge()
    assert wrong is not None
    assert wrong[0] == ("promoted" if place % 2 else "candidate")
    assert wrong[1].reason.code == "INCORRECT_NUMERICAL"


def test_right_answers_are_judged_once(kernel: LoadedKernel) -> None:
    later = JudgedLater(side_by_side=True)
    assert later.add("candidate", kernel, [answered(kernel), answered(kernel, "large")]) is None
    assert later.judge() is None
    assert later.judge() is None


def test_answers_that_take_much_memory_are_judged_before_more_wait(
    kernel: LoadedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_later, "MOST_WAITING_BYTES", 3 * 2 * 4 * 32 * 4)
    later = JudgedLater(side_by_side=True)
    asked = [answered(kernel), answered(kernel, off=0.25), answered(kernel)]
    assert [later.add("candidate", kernel, [one]) for one in asked] == [None, None, None]
    wrong = later.add("candidate", kernel, [answered(kernel)])
    assert wrong is not None
    assert later.judge() is None, "what was judged doesn't wait any more"
