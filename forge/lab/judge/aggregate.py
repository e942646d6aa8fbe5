"""Judges many errors together: their root mean square and mean, against the reference's on the same inputs.

A small error that always has one sign passes element by element, but adds up in later layers. Rows are the
independent samples: one wrong sum shifts all elements of its row. docs/numerics.md has the simulation behind the
allowances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM, SMALLEST_SIZE
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch

FEWEST_ROWS = 16
"""Number of rows from which on errors are judged. With fewer, the standard error itself is too uncertain."""
RMS_MULTIPLE = 2.0
"""Multiple of the reference's root mean square that is allowed. Chosen: the square of the errors may be four times
the reference's. A larger multiple hides larger errors."""
RMS_ROUNDING = 0.25
"""Root mean square that is allowed in addition, as a share of u_out plus u_acc (sqrt(n) + 8), the rounding of the
sum. Chosen; roundings go to both sides, so their root mean square stays well below their bound."""
STANDARD_ERRORS = 4.0
"""Number of standard errors by which the mean may differ by chance. Chance exceeds that in one of 16,000 normal
samples."""
COLUMN_STANDARD_ERRORS = 8.0
"""Number of standard errors for one column among thousands, from as few as 32 rows: chance reaches 5.5."""
BIAS_ROUNDING = 0.125
"""Share of u_out that is allowed for roundings that the reference doesn't make. Chosen; rounding to nearest has no
bias, and truncation has one half of u_out or more."""
BIAS_ARITHMETIC = 4.0
"""Multiple of u_acc that is allowed. Chosen: a few units in the last place, since approximate roots and reciprocals
err to one side."""


@dataclass(frozen=True)
class Sample:
    """One output of one call."""

    got: torch.Tensor
    expectation: Expectation
    baseline: torch.Tensor
    row_axis: int = 0
    """Axis along which results are independent."""


@dataclass(frozen=True)
class Aggregate:
    """The combined size of many errors, relative to S."""

    rms: float
    rms_allowed: float
    bias: float
    """Larger of the mean error and the mean error away from zero, for all columns or for one. The reference's bias
    and its standard error are subtracted."""
    bias_allowed: float

    @property
    def within(self) -> bool:
        """Whether both sizes are allowed."""
        return self.rms <= self.rms_allowed and self.bias <= self.bias_allowed

    @property
    def used(self) -> float:
        """Larger share of an allowance that was used."""
        return max(self.rms / self.rms_allowed, self.bias / self.bias_allowed)


def aggregate(samples: Sequence[Sample], *, dtype: DType) -> Aggregate | None:
    """Judge one output over several calls; return None if there are too few rows."""
    import torch

    own = torch.cat([_relative(s, s.got, dtype) for s in samples])
    if own.shape[0] < FEWEST_ROWS or own.shape[1] == 0:
        return None
    reference = torch.cat([_relative(s, s.baseline, dtype) for s in samples])
    away = torch.cat([_by_row(s.expectation.value.sign(), s.row_axis) for s in samples])
    out, accumulated = UNIT_ROUNDOFF[dtype], UNIT_ROUNDOFF["fp32"]
    growth = math.sqrt(max(s.expectation.terms for s in samples)) + ROUNDINGS_BESIDE_SUM
    excess = own - reference
    return Aggregate(
        rms=_rms(own),
        rms_allowed=RMS_MULTIPLE * _rms(reference) + RMS_ROUNDING * (out + accumulated * growth),
        bias=max(bias(errors) for errors in (excess, excess * away) for bias in (_mean_beyond_chance, _worst_column)),
        bias_allowed=BIAS_ROUNDING * out + BIAS_ARITHMETIC * accumulated,
    )


def _relative(sample: Sample, output: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Return errors over S as [rows, elements]; zero where S is so small that results are subnormal or flushed."""
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


def _mean_beyond_chance(errors: torch.Tensor) -> float:
    by_row = errors.mean(1)
    standard_error = float(by_row.std()) / math.sqrt(by_row.numel())
    return max(0.0, abs(float(by_row.mean())) - STANDARD_ERRORS * standard_error)


def _worst_column(errors: torch.Tensor) -> float:
    """Return the bias of the column that errs furthest to one side; columns would cancel, and each is a channel."""
    standard_errors = errors.std(0) / math.sqrt(errors.shape[0])
    return max(0.0, float((errors.mean(0).abs() - COLUMN_STANDARD_ERRORS * standard_errors).max()))
