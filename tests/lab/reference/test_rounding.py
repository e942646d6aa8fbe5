"""What rounding operands is magnified to is allowed where an answer is beyond the bound, and nothing more."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.job import Job
from forge.lab.judge.whole import judge_exact
from forge.lab.observed import Case
from forge.lab.reference.answers import rms
from forge.lab.reference.binding import answered
from forge.lab.reference.rounding import MOST_MAGNIFIED_ERROR, ROUNDINGS_BEFORE, one_rounding_off
from forge.operations.operation import Exact, Expectation
from tests.lab.reference.references import job_for, known

pytestmark = pytest.mark.usefixtures("walls")
UNIT = 2.0**-24
ROWS, COLUMNS = 8, 256
FILE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        {formula}


def get_inputs():
    return [torch.{drawn}(8, 256)]


def get_init_inputs():
    return []
"""
FAR = FILE.format(formula="return (x - {near}) * {near}", drawn="rand").replace("8, 256)", "8, 256) + {near}")
CENTERED = FILE.format(
    formula="c = x - x.mean(1, keepdim=True)\n        return c / c.square().mean(1, keepdim=True).sqrt()",
    drawn="randn",
)


@contextmanager
def asked_of(source: str, kernel: str | None = None) -> Iterator[Job]:
    """A job for a reference file that can be asked; its own text solves it if nothing else does."""
    inferred = known(source)
    job = job_for(kernel or source.replace("class Model", "class ModelNew"), "ModelNew")
    with answered(replace(job, operation=inferred.operation, shape={"batch": ROWS}, held_out=())) as job:
        yield job


def rules(job: Job, x: torch.Tensor) -> tuple[Expectation, Expectation]:
    """The one that was measured at admission, and the one that an answer beyond it is held against."""
    assert job.operation.reconsidered is not None
    (first,) = job.operation.oracle(x)
    (second,) = job.operation.reconsidered((first,), x)
    assert isinstance(first, Expectation)
    assert isinstance(second, Expectation)
    return first, second


def allowed(job: Job, rule: Expectation) -> torch.Tensor:
    """The part of the bound that is in proportion to the scale."""
    return rule.scale * (job.policy.tolerance_accumulate_multiple * UNIT * 9)


def test_each_element_is_allowed_what_three_roundings_of_its_operands_come_to() -> None:
    x = torch.rand(ROWS, COLUMNS, generator=torch.Generator().manual_seed(3)) + 10
    with asked_of(FAR.replace("{near}", "10")) as job:
        first, second = rules(job, x)
        more = allowed(job, second) - allowed(job, first)
    assert torch.allclose(more, ROUNDINGS_BEFORE * UNIT * 10 * x.double(), rtol=1e-3)


def test_a_jump_is_not_magnified_rounding() -> None:
    jumping = FILE.format(formula="return torch.where(x == x.round(), x, -x)", drawn="randn")
    x = torch.randint(1, 9, (ROWS, COLUMNS), generator=torch.Generator().manual_seed(3)).float()
    with asked_of(jumping) as job:
        first, second = rules(job, x)
    assert torch.equal(first.value, x.double())
    assert torch.equal(first.scale, second.scale)


def test_half_precision_is_never_allowed_for() -> None:
    x = torch.rand(ROWS, COLUMNS, generator=torch.Generator().manual_seed(3)) + 1000
    with asked_of(FAR.replace("{near}", "1000")) as job:
        first, second = rules(job, x)
        more = allowed(job, second) - allowed(job, first)
    assert torch.allclose(more, torch.full_like(more, MOST_MAGNIFIED_ERROR * rms(first.value)))


def test_half_precision_is_not_allowed_either_where_usual_values_cancel() -> None:
    x = torch.rand(ROWS, COLUMNS, generator=torch.Generator().manual_seed(3)) + 1000
    with asked_of(FILE.format(formula="return (x - 1000) * 1000", drawn="rand")) as job:
        first, second = rules(job, x)
        more = allowed(job, second) - allowed(job, first)
    assert torch.allclose(more, torch.full_like(more, MOST_MAGNIFIED_ERROR * rms(first.value)))


def near_each_other() -> torch.Tensor:
    """Rows whose mean is 1 to the last bit, and whose values differ by a hundredth."""
    steps = torch.randint(1, 4, (ROWS, COLUMNS // 2), generator=torch.Generator().manual_seed(5)) / 256
    return 1 + torch.cat([steps, -steps], dim=1)


@pytest.mark.parametrize(("roundings", "right"), [(2, True), (16, False)])
def test_a_mean_that_is_a_rounding_off_is_right_where_values_are_near_each_other(roundings: int, right: bool) -> None:
    x = near_each_other()
    off = CENTERED.replace("class Model", "class ModelNew").replace(
        "x.mean(1, keepdim=True)", f"x.mean(1, keepdim=True) * (1 + {roundings} * 2.0**-24)", 1
    )
    with (
        asked_of(CENTERED, off) as job,
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.limits(60.0), label="test") as loaded_kernel,
    ):
        assert isinstance(loaded_kernel, LoadedKernel)
        observed = loaded_kernel.call([Case(dict(job.shape), "normal", 0, (x,), ())])
        assert isinstance(observed, tuple)
        errors, wrong = loaded_kernel.judge(observed[0])
    assert (wrong is None) is right, (errors, wrong)


def test_the_first_rule_alone_would_refuse_it() -> None:
    with asked_of(CENTERED) as job:
        first, second = rules(job, near_each_other())
    off = 2 * UNIT / 0.01
    assert float(allowed(job, first).min()) < off < float(allowed(job, second).max())


def test_whole_numbers_are_not_rounded() -> None:
    assert torch.equal(one_rounding_off(torch.arange(5)), torch.arange(5))
    some = torch.tensor([1.0, -3.0])
    assert torch.equal((one_rounding_off(some) / some.double() - 1).abs(), torch.full((2,), UNIT).double())


TIES = FILE.format(
    formula="return torch.topk(torch.softmax(x @ torch.ones(256, 64), -1) + x[:, :64], 2)", drawn="randn"
)


@pytest.mark.parametrize(("gap", "may_swap"), [(2, True), (12, True), (64, False)])
def test_an_index_may_be_that_of_a_number_that_nearly_ties_and_no_other(gap: int, may_swap: bool) -> None:
    with asked_of(TIES) as job:
        x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(3))
        x[0, :64] = -9.0
        x[0, 7], x[0, 40], x[0, 9] = 1.0, 1.0 + gap * UNIT, 0.5
        expected = job.operation.oracle(x)
        assert job.operation.reconsidered is not None
        reconsidered = job.operation.reconsidered(expected, x)
        strict, rule = expected[1], reconsidered[1]
        assert isinstance(strict, Exact)
        assert isinstance(rule, Exact)
        right = strict.value
        swapped, wrong = right.clone(), right.clone()
        swapped[0] = right[0].flip(0)
        wrong[0, 1] = 9
        assert sorted(right[0].tolist()) == [7, 40]
        assert not judge_exact(swapped, strict).within
        assert judge_exact(right, rule).within
        assert not judge_exact(wrong, rule).within
        assert judge_exact(swapped, rule).within == may_swap
        everywhere = right.flip(1)
        assert not judge_exact(everywhere, replace(rule, others=(everywhere,))).within, "too many for ties"
