"""Many errors together: their root mean square and their mean, against the reference's own on the same inputs.

An error that is small everywhere but always has one sign passes element by element, and adds up in the layers behind.
Rows are the independent samples: one wrong sum shifts all elements of its row. docs/numerics.md has the simulation
that the allowances come from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.domain.operation import Expectation
from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.lab.judge.elementwise import BESIDE_THE_SUM, SMALLEST_SIZE

if TYPE_CHECKING:
    import torch

FEWEST_ROWS = 16
"""With fewer, the standard error is itself too uncertain to judge by."""
RMS_MULTIPLE = 2.0
RMS_ROUNDING = 0.25
"""Of u_out; and this share of u_acc (sqrt(n) + 8) for the sum."""
STANDARD_ERRORS = 4.0
COLUMN_STANDARD_ERRORS = 8.0
"""Of one column among thousands, from as few as 32 rows: chance reaches 5.5."""
BIAS_ROUNDING = 0.125
"""Of u_out: roundings on the way that the reference doesn't make."""
BIAS_ARITHMETIC = 4.0
"""Of u_acc: approximate roots and reciprocals err to one side."""


@dataclass(frozen=True)
class Sample:
    """One output of one call."""

    got: torch.Tensor
    expectation: Expectation
    baseline: torch.Tensor
    row_axis: int = 0
    """The axis along which results are independent."""


@dataclass(frozen=True)
class Aggregate:
    """What many errors come to, relative to S."""

    rms: float
    rms_allowed: float
    bias: float
    """The larger of the mean error and the mean error away from zero, of all columns or of one, less the reference's
    and its standard error."""
    bias_allowed: float

    @property
    def within(self) -> bool:
        """Whether both are allowed."""
        return self.rms <= self.rms_allowed and self.bias <= self.bias_allowed

    @property
    def used(self) -> float:
        """The larger share of what is allowed."""
        return max(self.rms / self.rms_allowed, self.bias / self.bias_allowed)


def aggregate(samples: Sequence[Sample], *, dtype: DType) -> Aggregate | None:
    """Judge one output over several calls; None where there are too few rows to say anything."""
    import torch

    own = torch.cat([_relative(s, s.got, dtype) for s in samples])
    if own.shape[0] < FEWEST_ROWS or own.shape[1] == 0:
        return None
    reference = torch.cat([_relative(s, s.baseline, dtype) for s in samples])
    away = torch.cat([_by_row(s.expectation.value.sign(), s.row_axis) for s in samples])
    out, accumulated = UNIT_ROUNDOFF[dtype], UNIT_ROUNDOFF["fp32"]
    growth = math.sqrt(max(s.expectation.terms for s in samples)) + BESIDE_THE_SUM
    more = own - reference
    return Aggregate(
        rms=_rms(own),
        rms_allowed=RMS_MULTIPLE * _rms(reference) + RMS_ROUNDING * (out + accumulated * growth),
        bias=max(bias(errors) for errors in (more, more * away) for bias in (_beyond_chance, _in_a_column)),
        bias_allowed=BIAS_ROUNDING * out + BIAS_ARITHMETIC * accumulated,
    )


def _relative(sample: Sample, output: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Errors over S as [rows, elements]; nothing where S is so small that results are subnormal or flushed."""
    import torch

    scale = sample.expectation.scale
    sizeable = scale > SMALLEST_SIZE[dtype] / UNIT_ROUNDOFF[dtype]
    error = (output.double() - sample.expectation.value) / scale
    return _by_row(torch.where(sizeable, error, 0.0), sample.row_axis)


def _by_row(tensor: torch.Tensor, row_axis: int) -> torch.Tensor:
    rows_first = tensor.movedim(row_axis, 0)
    return rows_first.reshape(rows_first.shape[0], -1)


def _rms(errors: torch.Tensor) -> float:
    return float(errors.square().mean().sqrt())


def _beyond_chance(errors: torch.Tensor) -> float:
    by_row = errors.mean(1)
    standard_error = float(by_row.std()) / math.sqrt(by_row.numel())
    return max(0.0, abs(float(by_row.mean())) - STANDARD_ERRORS * standard_error)


def _in_a_column(errors: torch.Tensor) -> float:
    """The same in the column that is furthest to one side: columns cancel, and each is a channel."""
    standard_errors = errors.std(0) / math.sqrt(errors.shape[0])
    return max(0.0, float((errors.mean(0).abs() - COLUMN_STANDARD_ERRORS * standard_errors).max()))
