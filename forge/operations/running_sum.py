"""How far one running sum in fp32 of positive terms may drift, where rounding errors have one sign and add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.domain.tensors import UNIT_ROUNDOFF

if TYPE_CHECKING:
    import torch

NEARLY_EQUAL = 4.0
"""Largest distance of the largest term from the mean, in u_acc of the sum, at which all terms are rounded alike. A
spread of more than two units in the last place lets errors cancel."""
SAMPLED = 64
"""Number of each row's terms that are compared with each other, to see if terms repeat. A sort of all costs more than
the rest of an oracle."""
OFTEN = 4.0
"""Mean number of terms that equal a term, itself included, from which on a row's terms repeat. Chosen; with fewer
the bound of terms that are rounded independently holds. Normal numbers in bf16 reach 2.5 in rows of 1,000."""


def drift_share(terms: torch.Tensor) -> torch.Tensor:
    """Return the share of each row's sum by which a running sum may drift: terms [..., n] >= 0, fp64 -> [..., 1].

    One addition to a sum s errs by u_acc s at most. Errors of three kinds of terms have one sign:

    - A term of at most u_acc s may leave the running sum as it was, as if it were missing.
    - Terms that are equal but for a few u_acc s are all rounded to the same step.
    - Equal terms are rounded alike in any order, since a running sum is a whole number of its units.

    A term of zero, as of a position that is masked, is no term. A sum of nothing doesn't drift, nor does one that
    isn't finite.
    """
    import torch

    total = terms.sum(-1, keepdim=True)
    if not terms.shape[-1]:
        return total
    step, largest = UNIT_ROUNDOFF["fp32"] * total, terms.amax(-1, keepdim=True)
    lost = terms.where(terms <= step, 0.0).sum(-1, keepdim=True)
    some = terms > 0
    alike = _alike(total, largest, some)
    if bool(alike.any()):
        below = (largest - terms).minimum(step).where(some, 0.0)
        lost = lost + torch.where(alike, below.sum(-1, keepdim=True), 0.0)
    repeat = _repeat(terms, step)
    if bool(repeat.any()):
        lost[repeat] += step[repeat] * _equal_pairs(_ordered(terms[repeat]), step[repeat]).sqrt()
    return (lost / total).nan_to_num(nan=0.0, posinf=0.0)


def drift_share_of_weighted(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return the share of each weighted sum by which two running sums may drift: that of the weights, and its own.

    Weights [..., n] >= 0, values [..., n, d], both fp64 -> [..., d] or [..., 1]. Weights that are nearly equal give
    equal products where values are equal.
    """
    import torch

    own = drift_share(weights)
    if not weights.shape[-1]:
        return 2 * own
    alike = _alike(weights.sum(-1, keepdim=True), weights.amax(-1, keepdim=True), weights > 0)
    if not bool(alike.any()):
        return 2 * own
    columns = _ordered(values.abs().transpose(-1, -2))
    pairs = _equal_pairs(columns, columns.new_zeros(*columns.shape[:-1], 1)).transpose(-1, -2)
    return own + torch.where(alike, own.maximum(UNIT_ROUNDOFF["fp32"] * pairs.sqrt()), own)


def _alike(total: torch.Tensor, largest: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
    """Return for each row whether its terms besides zeros are all rounded to the same step.

    The row's sum and its largest term are [..., 1]; `some` says which terms are above zero.
    """
    mean = total / some.sum(-1, keepdim=True)
    return largest - mean <= NEARLY_EQUAL * UNIT_ROUNDOFF["fp32"] * total


def _ordered(terms: torch.Tensor) -> torch.Tensor:
    """Return each row's terms in order, as numbers in fp32: those that differ in fp64 alone are equal in a kernel.

    On a processor NumPy sorts rows of 4,096 five times as fast as torch.
    """
    import numpy as np
    import torch

    single = terms.float()
    if single.is_cuda:
        return single.sort(-1).values
    return torch.from_numpy(np.sort(single.numpy(), axis=-1))


def _repeat(terms: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Return for each row whether its terms repeat, as far as some at regular distances show."""
    count = terms.shape[-1]
    sampled = _ordered(terms[..., :: -(-count // SAMPLED)])
    if not bool((sampled[..., 1:] == sampled[..., :-1]).any()):
        return sampled.new_zeros(sampled.shape[:-1]).bool()
    pairs = _equal_pairs(sampled, step) - (sampled > step).sum(-1, keepdim=True)
    return (pairs * (count - 1) > (OFTEN - 1) * sampled.shape[-1] * max(1, sampled.shape[-1] - 1)).squeeze(-1)


def _equal_pairs(ordered: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Return the sum of the squares of how often each term above a step occurs in its row, of rows in order."""
    import torch

    rows = ordered.reshape(-1, ordered.shape[-1])
    begins = torch.nn.functional.pad(rows[:, 1:] != rows[:, :-1], (1, 1), value=True)  # and one behind the last
    row, place = begins.nonzero(as_tuple=True)
    often = place.diff()
    counted = (often > 0) & (rows[row[:-1], place[:-1].clamp(max=rows.shape[1] - 1)] > step.reshape(-1)[row[:-1]])
    pairs = row.new_zeros(rows.shape[0]).index_add_(0, row[:-1], often.square().where(counted, 0))
    return pairs.reshape(step.shape).double()
