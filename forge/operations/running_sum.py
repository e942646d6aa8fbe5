"""How far one running sum in fp32 of positive terms may drift, where rounding errors have one sign and add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.domain.tensors import UNIT_ROUNDOFF

if TYPE_CHECKING:
    import torch

NEARLY_EQUAL = 4.0
"""Largest distance of the largest term from the mean, in u_acc of the sum, at which all terms are rounded alike. A
spread of more than two units in the last place lets errors cancel."""


def drift_share(terms: torch.Tensor) -> torch.Tensor:
    """Return the share of each row's sum by which a running sum may drift: terms [..., n] >= 0, fp64 -> [..., 1].

    One addition to a sum s errs by u_acc s at most. Errors of two kinds of terms have one sign:

    - A term of at most u_acc s may leave the running sum as it was, as if it were missing.
    - Terms that are equal but for a few u_acc s are all rounded to the same step.

    A sum of nothing and one that isn't finite don't drift.
    """
    import torch

    total = terms.sum(-1, keepdim=True)
    if not terms.shape[-1]:
        return total
    step, largest = UNIT_ROUNDOFF["fp32"] * total, terms.amax(-1, keepdim=True)
    lost = terms.where(terms <= step, 0.0).sum(-1, keepdim=True)
    alike = largest - total / terms.shape[-1] <= NEARLY_EQUAL * step
    if bool(alike.any()):
        lost = lost + torch.where(alike, (largest - terms).minimum(step).sum(-1, keepdim=True), 0.0)
    return (lost / total).nan_to_num(nan=0.0, posinf=0.0)
