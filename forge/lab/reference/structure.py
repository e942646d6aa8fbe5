"""Finds structures in whole numbers and truth values that no range has: order, distinct numbers, one sum, position.

Numbers with a structure are drawn by the file alone. A structure whose name begins with `rows` holds within each row,
so a choice of rows has it too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from forge.lab.reference.survey import Seen

FEWEST_STEPS = 24
"""Number of steps between neighbours from which on an order isn't taken for chance: 2^-24 is a rare chance."""
FEWEST_COLLISIONS = 20
"""Number of equal pairs that random numbers would be expected to have; if there are none, they are drawn distinct."""
FEWEST_DRAWS = 64
"""Number of draws from which on the mean at each position is compared. With 64 draws, `MOST_DEVIATIONS` standard
errors are one standard deviation of the values."""
MOST_DEVIATIONS = 8.0
"""Distance of a position's mean from the mean of all, in standard errors, up to which it is taken for chance."""


def structure_of_numbers(seen: Seen) -> str | None:
    """Return the structure of whole numbers or truth values over all draws that were kept, in words."""
    import torch

    stacked = torch.stack(seen.whole).long()
    if stacked[0].numel() == 0:
        return "empty"
    if stacked.dim() > 1:
        found = _of_rows(stacked.reshape(-1, stacked.shape[-1]), seen.high - seen.low, beside=stacked.dim() > 2)
        if found is not None:
            return found
    square = stacked.dim() > 2 and stacked.shape[-1] == stacked.shape[-2] > 1
    if square and bool((stacked == stacked.mT).all()):
        return "symmetric"
    return _of_positions(stacked)


def _of_rows(rows: torch.Tensor, span: float, *, beside: bool) -> str | None:
    """Return the structure of rows; `beside` says that one draw has several."""
    count, width = rows.shape
    if count * (width - 1) < FEWEST_STEPS:
        return None
    if bool((rows == rows[:, :1]).all()):
        return "rows have one value"
    steps = rows.diff(dim=-1)
    if bool((steps >= 0).all()) or bool((steps <= 0).all()):
        return "rows are in order" if beside else "in order"
    if bool((rows.sum(-1) == rows[0].sum()).all()) and count > 1:
        return "rows have one sum" if beside else "one sum, as a permutation has"
    collisions = count * math.comb(width, 2) / (span + 1)
    if collisions >= FEWEST_COLLISIONS and bool((rows.sort(-1).values.diff(dim=-1) > 0).all()):
        return "rows have distinct numbers" if beside else "distinct numbers"
    return None


def _of_positions(stacked: torch.Tensor) -> str | None:
    """Return whether positions have other means, as the first token of each row, or the diagonal, may have."""
    draws = stacked.shape[0]
    if draws < FEWEST_DRAWS or stacked[0].numel() < 2:
        return None
    values = stacked.double()
    deviation = float(values.std())
    if deviation == 0 or not _differs(values.mean(0), values, deviation, draws):
        return None
    if stacked.dim() > 2:
        others = [dim for dim in range(values.dim()) if dim != 1]
        count = stacked.numel() // stacked.shape[1]
        if not _differs(values.mean(others), values, deviation, count):
            return "rows have other values at each position"
    return "other values at each position"


def _differs(means: torch.Tensor, values: torch.Tensor, deviation: float, count: int) -> bool:
    return float((means - values.mean()).abs().max()) > MOST_DEVIATIONS * deviation / math.sqrt(count)
