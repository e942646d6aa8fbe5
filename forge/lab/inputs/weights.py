"""Draws the operands beside activations, such as a norm's weight: other values for each of eleven kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from forge.domain.input_kind import InputKind
from forge.domain.tensors import DType

if TYPE_CHECKING:
    import torch

LARGE_WEIGHTS = 32.0
"""Scale of the weights beside `large` activations. Their products with normalised rows stay inside every dtype's
range."""
WEIGHT_SHIFT = 4.0
"""Distance from zero of the weights beside shifted activations, half of theirs. Whole rows of their products are then
positive or negative."""
WEIGHT_POWERS_APART: dict[DType, int] = {"fp32": 20, "bf16": 20, "fp16": 8}
"""Number of powers of two from a usual weight to the largest and to the smallest one beside rows far apart, by dtype.
The first two exceed the range of fp16, into which no kernel may round them."""
KEPT_WEIGHTS = 0.75
"""Share of the weights that aren't zero beside `single` activations. Chosen: each tile of a kernel then has zeros."""
SPECIAL_VALUES = (math.nan, math.inf, -math.inf)
"""Values that the kind `special_weights` puts into weights."""


class NormalWeights(NamedTuple):
    """Standard normal values of one operand, which a kind changes."""

    values: torch.Tensor
    dtype: DType
    unit: float
    """Usual size of the operand; the values are in units of it."""
    generator: torch.Generator
    place: int = 0
    """Number of the operand among the weights."""


def weights_of_kind(kind: InputKind, normal: NormalWeights) -> torch.Tensor:
    """Return the weights for a kind, with the sizes of `normal`'s values, which may be changed in place."""
    change = _KINDS.get(kind)
    return normal.values if change is None else change(normal)


def _coin(generator: torch.Generator) -> bool:
    import torch

    return bool(torch.rand((), generator=generator) < 0.5)


def _integers(one: NormalWeights) -> torch.Tensor:
    """Return signed powers of two from 1/4 to 4, so that sums are exact."""
    import torch

    return torch.where(one.values < 0, -1.0, 1.0) * torch.exp2((one.values.abs() * 2).floor().clamp(max=4) - 2)


def _equal(one: NormalWeights) -> torch.Tensor:
    """Return ones, or another number; in a third of the draws the others are zero beside it, as in a new norm."""
    import torch

    way = one.generator.initial_seed() % 3  # the same for all operands of a draw
    if way == 0 and one.place:
        return torch.zeros_like(one.values)
    return torch.full_like(one.values, float(one.values.abs().amax()) if way == 2 else 1.0)


def _ordered(one: NormalWeights) -> torch.Tensor:
    rising = one.values.sort(-1).values
    return rising if _coin(one.generator) else rising.flip(-1)


def _one_zero(one: NormalWeights) -> torch.Tensor:
    import torch

    if one.values.numel():
        one.values.view(-1)[torch.randint(one.values.numel(), (), generator=one.generator)] = 0.0
    return one.values


def _some_zeros(one: NormalWeights) -> torch.Tensor:
    import torch

    return one.values * (torch.rand(one.values.shape, generator=one.generator) < KEPT_WEIGHTS)


def _apart(one: NormalWeights) -> torch.Tensor:
    import torch

    most = WEIGHT_POWERS_APART[one.dtype]
    return one.values * torch.randint(-most, most + 1, one.values.shape, generator=one.generator).exp2()


def _shifted(one: NormalWeights) -> torch.Tensor:
    sign = 1.0 if _coin(one.generator) else -1.0
    return one.values + sign * WEIGHT_SHIFT / one.unit


def _special(one: NormalWeights) -> torch.Tensor:
    """Put the special values into random places, and one of them into the last place; they take turns there."""
    import torch

    flat = one.values.view(-1)
    others = torch.randperm(max(0, flat.numel() - 1), generator=one.generator).tolist()
    first = one.generator.initial_seed()
    for turn, place in enumerate((flat.numel() - 1, *others)[: len(SPECIAL_VALUES)], first):
        flat[place] = SPECIAL_VALUES[turn % len(SPECIAL_VALUES)]
    return one.values


_KINDS: dict[InputKind, Callable[[NormalWeights], torch.Tensor]] = {
    "integers": _integers,
    "weights_near_one": lambda one: 1 + one.values / 16,
    "zero_weights": lambda one: one.values * 0.0,  # zeros of either sign
    "equal_weights": _equal,
    "ordered": _ordered,
    "sparse": _one_zero,
    "single": _some_zeros,
    "rows_apart": _apart,
    "large": lambda one: one.values * LARGE_WEIGHTS,
    "offset_operands": _shifted,
    "special_weights": _special,
}
