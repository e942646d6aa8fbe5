"""Infers how a tensor's values are distributed from a survey of its draws.

Only distributions that are plainly uniform, normal or a few values are inferred. Otherwise the file's own generator
draws, under the host's seed, in the reference's guest. So a triangular matrix stays triangular, and a row that sums
to one still does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.domain.own_operation import CONSTANT, Among, Family, Generated, Integers, Normal, Uniform
from forge.lab.reference.structure import structure_of_numbers

if TYPE_CHECKING:
    import torch

    from forge.lab.reference.survey import Seen

FEWEST_VALUES = 64
"""Number of values from which on a distribution can be inferred. The standard deviation of 64 normal numbers is
uncertain by 9 %, which is 1 / sqrt(2 * 63)."""
LARGEST_INTEGER = 2**63 - 1
"""Largest 64-bit whole number, which no draw below a bound reaches."""
MOST_DISTINCT = 8
"""Number of different values up to which a tensor counts as a choice among values. Chosen: below `FEWEST_VALUES` by a
factor of eight, so that each value is seen several times."""
ZERO_SHARE = 0.02
"""Share of zeros above which they count as a structure. Chosen; continuous values are never zero, and rounding makes
few of them so."""
SAME_WITHIN = 1e-5
"""Relative distance up to which sums or lengths of rows count as equal. Chosen; sums in fp32 of thousands of
terms differ by less."""


def family_of(seen: Seen) -> Family:
    """Return the family of a tensor that was drawn under several seeds."""
    import torch

    first = seen.whole[0]
    if not seen.varies:
        return Generated(structure=CONSTANT)
    if not first.is_floating_point():
        return _family_of_whole_numbers(seen)
    values = torch.cat(seen.sampled).double()
    if not bool(values.isfinite().all()):
        return Generated(structure="has NaN or infinities")
    structure = _structure(first)
    if structure is not None:
        return Generated(structure=structure)
    distinct = values.unique() if values[: 2**14].unique().numel() <= MOST_DISTINCT else values
    if values.numel() >= FEWEST_VALUES and distinct.numel() <= MOST_DISTINCT:
        return Among(values=tuple(float(one) for one in distinct))
    return _distribution(values, seen)


def _family_of_whole_numbers(seen: Seen) -> Family:
    if seen.high >= LARGEST_INTEGER:
        return Generated(structure="reaches the largest number")
    structure = structure_of_numbers(seen)
    if structure is not None:
        return Generated(structure=structure)
    if seen.whole[0].element_size() == 1 and {seen.low, seen.high} == {False, True}:
        return Among(values=(0.0, 1.0))
    return Integers(low=int(seen.low), high=int(seen.high))


def _structure(tensor: torch.Tensor) -> str | None:
    import torch

    if tensor.numel() == 0:
        return "empty"
    if tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] and tensor.shape[-1] > 1:
        square = tensor.reshape(-1, *tensor.shape[-2:])[0].double()
        if torch.equal(square, square.T):
            return "symmetric"
    if 1 - int(tensor.count_nonzero()) / tensor.numel() > ZERO_SHARE:
        return "has many zeros, as triangular and sparse matrices do"
    if tensor.dim() >= 1 and tensor.shape[-1] > 2:
        rows = tensor.reshape(-1, tensor.shape[-1])[:64].double()
        sums = rows.sum(-1)
        if bool((sums - sums[0]).abs().max() <= SAME_WITHIN * rows.abs().sum(-1).max()) and rows.shape[0] > 1:
            return "rows have one sum"
        if bool((rows.diff(dim=-1) >= 0).all()):
            return "rows are in order"
        norms = rows.norm(dim=-1)
        if rows.shape[0] > 1 and bool((norms - norms[0]).abs().max() <= SAME_WITHIN * norms.max()):
            return "rows have one length"
    return None


def _distribution(values: torch.Tensor, seen: Seen) -> Family:
    low, high = float(values.min()), float(values.max())
    mean, deviation = float(values.mean()), float(values.std())
    if values.numel() < FEWEST_VALUES or deviation == 0:
        return Generated(structure="too few values to tell a distribution")
    flat = deviation * math.sqrt(12) / (high - low)
    shape = (values - mean) / deviation
    skewed, tailed = float(shape.pow(3).mean()), float(shape.pow(4).mean())
    # the fourth moment of a uniform distribution is 9/5, that of a normal one is 3
    margin = 12 / math.sqrt(values.numel())
    if abs(flat - 1) <= 0.05 + margin and abs(tailed - 1.8) <= 0.1 + margin:
        return Uniform(low=_rounded(seen.low, high - low), high=_rounded(seen.high, high - low))
    if abs(skewed) <= 0.1 + margin and abs(tailed - 3) <= 0.3 + 2 * margin:
        return Normal(mean=_rounded(mean, 4 * deviation), deviation=_rounded(deviation, deviation))
    return Generated(structure="neither uniform nor normal")


def _rounded(value: float, size: float) -> float:
    """Round to a step of at most a third of the spread, if that is near: samples seldom reach the ends themselves."""
    step = 10.0 ** math.floor(math.log10(size) - 0.5)
    near = round(value / step) * step
    return near if abs(near - value) <= 0.03 * size else value
