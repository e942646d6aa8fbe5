"""Compares correct answers of one kernel to the same question, in units of what rounding explains or bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.judge import spread
from forge.lab.observed import Case, Observed
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch


def correct_answer(kernel: LoadedKernel, case: Case) -> Observed | Failed:
    """Call the kernel on one case and judge its outputs; return them if they are correct, otherwise the refusal."""
    observed = kernel.call([case])
    if isinstance(observed, Failed):
        return observed
    return kernel.judge(observed[0])[1] or observed[0]


def largest_difference(kernel: LoadedKernel, one: Observed, other: Observed) -> float:
    """Return the largest difference between two answers to the same question; 0 if they are equal bit for bit.

    Outputs that aren't rounded add nothing here: each answer must match the oracle exactly in them.
    """
    if equal(one, other):
        return 0.0
    expectations = kernel.operation.oracle(*one.case.inputs, *one.case.scalars)
    return max(
        spread(now, then, expected, dtype=spec.rounded_to(kernel.dtype), policy=kernel.policy)
        if isinstance(expected, Expectation)
        else 0.0
        for spec, now, then, expected in zip(
            kernel.operation.outputs, one.outputs, other.outputs, expectations, strict=True
        )
    )


def equal(one: Observed, other: Observed) -> bool:
    """Return whether two answers have the same values."""
    return all(bool((now == then).all()) for now, then in zip(one.outputs, other.outputs, strict=True))


def as_words(rows: torch.Tensor) -> torch.Tensor:
    """Return the bytes of each row as the widest integers that divide them, [rows, words of a row].

    Eight bytes are compared as fast as one.
    """
    import torch

    content = rows.contiguous().view(torch.uint8).reshape(len(rows), -1)
    sizes = (torch.int64, torch.int32, torch.int16, torch.uint8)
    return content.view(next(one for one in sizes if not content.shape[1] % one.itemsize))
