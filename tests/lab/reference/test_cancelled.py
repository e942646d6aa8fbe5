"""Where usual intermediates cancel to a small result, a kernel may round them as it likes, and no more than that."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from forge.domain.input_kind import InputKind
from forge.lab.calls.judged_outputs import judged_outputs
from forge.lab.inputs.draw import draw
from forge.lab.judge.reference_call import outputs_of
from forge.lab.observed import Case, Observed
from forge.lab.reference.binding import answered
from tests.lab.reference.references import job_against, known

pytestmark = pytest.mark.usefixtures("walls")
Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
FILE = """
import torch
import torch.nn.functional as F


def loss(a, b):
    return torch.mean(1 - F.cosine_similarity(a, b, dim=1))


def get_inputs():
    return [torch.randn(32, 128), torch.randn(32, 128)]
"""
SQUARES = FILE.replace("torch.mean(1 - F.cosine_similarity(a, b, dim=1))", "torch.mean((a - b) ** 2)")
SEEDS = range(24)


def cosines(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * b).sum(1) / (a.square().sum(1).sqrt() * b.square().sum(1).sqrt()).clamp(min=1e-8)


def of_a_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return 1 - cosines(a, b).sum() / len(a)


def of_rounded_cosines(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return 1 - cosines(a, b).bfloat16().float().sum() / len(a)


def of_too_few_columns(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return of_a_sum(a[:, :-1], b[:, :-1])


def squares(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a - b).square().mean()


def a_little_more(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Err by a quarter of a thousandth of the usual result."""
    return squares(a, b) + 2.0**-12


def refusals(source: str, kernel: Kernel, kind: InputKind) -> int:
    """Number of draws of a kind at which the kernel is refused."""
    refused = 0
    with answered(replace(job_against(known(source), "", "loss"), held_out=())) as job:
        operation = job.operation
        for seed in SEEDS:
            inputs = draw(operation, job.shape, "fp32", kind, seed=seed)
            results = judged_outputs(
                operation,
                Observed(Case(job.shape, kind, seed, inputs, ()), (kernel(*inputs),), 0),
                operation.oracle(*inputs),
                outputs_of(operation, operation.reference, inputs, ()),
                dtype="fp32",
                policy=job.policy,
            )
            refused += not all(one.within for one in results)
    return refused


@pytest.mark.parametrize("kind", ["normal", "ordered", "falling", "constant"])
def test_a_loss_by_a_sum_of_cosines_is_right_where_they_are_near_one(kind: InputKind) -> None:
    assert refusals(FILE, of_a_sum, kind) == 0


@pytest.mark.parametrize("kernel", [of_rounded_cosines, of_too_few_columns])
def test_a_wrong_loss_is_refused_there(kernel: Kernel) -> None:
    assert refusals(FILE, kernel, "ordered") == len(SEEDS)


@pytest.mark.parametrize("kind", ["small", "zeros"])
def test_a_result_that_is_small_because_its_operands_are_keeps_its_bound(kind: InputKind) -> None:
    assert refusals(SQUARES, squares, kind) == 0
    assert refusals(SQUARES, a_little_more, kind) == len(SEEDS)
