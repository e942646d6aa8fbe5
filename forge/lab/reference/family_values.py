"""Draws fresh values of an inferred family, as a kind of values asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import Among, Integers, Normal, Uniform
from forge.lab.inputs.mixed import nearest_powers
from forge.lab.reference.planted_values import falling, planted, rising

if TYPE_CHECKING:
    import torch

SIGNED: InputKind = "signed_weights"
"""Kind that gives weights either sign."""
WEIGHT_FACTORS: dict[InputKind, float] = {"large_weights": 16.0, "far_weights": 256.0}
"""Factors of kinds that make all parameters larger, since trained weights are larger than new ones. Chosen: sums of
operands below one then exceed the ends of a clip, and powers of e overflow."""
OF_WEIGHTS = frozenset({SIGNED, *WEIGHT_FACTORS})
"""Kinds that change weights and no operand."""
OUTSIDE: dict[InputKind, float] = {
    "outside_range": 1.0,
    "far_outside_range": 16.0,
    "overflowing": 1.0,
    "shifted_range": 1.0,
}
"""Standard deviations of kinds that leave the range of a uniform operand, in the larger size of its two ends. Files
call `torch.rand` for short: callers of a relu have numbers below zero too. Chosen; the first stays near the range.
Each row of the second has one sign. The others are as the kinds `far` and `beside_zero` of normal operands: powers of
e overflow, and means are larger than deviations. The last one lies above zero, where no activation is near zero."""
FAR = 2.0**11
"""Least distance of the kind `far` from the mean, in standard deviations. Kernels pad with numbers like -1000 where
only minus infinity is right; four times this number is finite in fp16."""
FAR_STEPS = 2
"""Number of steps of the kind `far` in its least distance. A softmax of numbers a thousand apart is one or zero, or
evenly shared. Kernels that multiply before they subtract, as by log2(e), are right there too."""
VERY_FAR = 64.0
"""Factor of the kind `very_far` over `far`: its values exceed 2^17 deviations. Kernels pad with -10,000 or -65,504,
or leave out a clip at such a number. In fp16 they overflow, so a reference isn't finite there."""
BESIDE_ZERO = 6.0
"""Distance of the kind `beside_zero` from the mean, in standard deviations. A variance as a difference of two means
then loses 36 times its own error. Chosen; further away, a right one loses much to the rounding of its mean too."""
FAR_ROW, FAR_ROW_STEPS = 16.0, 8
"""Least value of the kind `far_rows` in standard deviations, and number of steps in which it rises from row to row.

A product of two rows of 16 numbers is 4096 at least, and a thousand after a division by the root of 16. Two such
products differ by a hundred or more, so a softmax of them is one or zero."""
OUTLIER = 64.0
"""Distance of an outlier from the mean, in standard deviations. Its square is finite in fp16."""
MOST_IN_A_ROW = 8  # a sum that leaves one of eight out is wrong in each dtype
CONSTANT_BITS = 3
"""Number of significant bits of the kind `constant`. Squares then have six, so sums of 2^18 of them are exact in
fp32."""


def draw_family(
    family: Uniform | Normal | Among | Integers, sizes: tuple[int, ...], kind: InputKind, generator: torch.Generator
) -> torch.Tensor:
    """Draw fresh values of a family [*sizes], in fp32 or int64, in the pattern of a kind of values.

    A kind that doesn't apply to the family changes nothing.
    """
    import torch

    match family:
        case Uniform(low=low, high=high) if kind in OUTSIDE:
            return OUTSIDE[kind] * max(abs(low), abs(high)) * _outside(sizes, kind, generator)
        case Uniform(low=low, high=high):
            shares = _KINDS.get(kind, lambda drawn, _: drawn)(torch.rand(sizes, generator=generator), generator)
            zero = -low / (high - low)
            values = low + (high - low) * (_around_zero(shares, kind, zero, generator) if 0 <= zero <= 1 else shares)
            return _with_few_bits(values, low, high) if kind == "constant" else values
        case Normal(mean=mean, deviation=deviation):
            values = _NORMAL_KINDS.get(kind, lambda drawn, _: drawn)(
                torch.randn(sizes, generator=generator), generator
            )
            drawn = deviation * values + (mean if mean else -0.0)  # a sum with zero has no negative zeros
            return _with_few_bits(drawn, -math.inf, math.inf) if kind == "constant" else drawn
        case Among(values=values):
            drawn = torch.tensor(values)[torch.randint(len(values), sizes, generator=generator)]
            return planted(drawn, family, kind, generator)
        case Integers(low=low, high=high):
            return planted(torch.randint(low, high + 1, sizes, generator=generator), family, kind, generator)
        case _:
            assert_never(family)


def _outside(sizes: tuple[int, ...], kind: InputKind, generator: torch.Generator) -> torch.Tensor:
    """Return normal numbers. Those far outside a range have one sign in each row, drawn at random.

    Largest values are then below zero in some rows, and in others sums of two operands are.
    """
    import torch

    values = torch.randn(sizes, generator=generator)
    if kind == "overflowing":
        return _far(values, generator)
    if kind == "shifted_range":
        return values + BESIDE_ZERO
    if kind != "far_outside_range":
        return values
    below = torch.rand((*sizes[:-1], 1) if sizes else (), generator=generator) < 0.5
    return torch.where(below, -values.abs(), values.abs())


def _alternating(values: torch.Tensor) -> torch.Tensor:
    """Return the values' sizes with signs in turn, positive first."""
    sizes = values.abs()
    if values.dim():
        sizes[..., 1::2].neg_()
    return sizes


def _one_sided(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the values' sizes with one sign in each row, rows in turn; a random sign comes first."""
    return _in_turn(values.abs(), values.numel() // max(1, values.shape[-1]) if values.dim() else 1, generator)


def _in_turn(sizes: torch.Tensor, parts: int, generator: torch.Generator) -> torch.Tensor:
    """Return sizes of which every second part is negative."""
    import torch

    first = int(torch.randint(2, (), generator=generator))
    if sizes.numel():
        sizes.view(parts, -1)[first::2].neg_()
    return sizes


def _far(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return each sample's values far below zero or far above it, in turn; a random one comes first.

    They lie on a coarse grid. Numbers that far from zero and near each other have differences that rounding decides.
    """
    sizes = (1 + (values.abs() * FAR_STEPS).round() / FAR_STEPS) * FAR
    return _in_turn(sizes, sizes.shape[0] if sizes.dim() else 1, generator)


def _sign(generator: torch.Generator) -> float:
    """Return 1 or -1, at random."""
    import torch

    return 1.0 - 2.0 * float(torch.randint(2, (), generator=generator))


def _far_rows(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return one value in each row of a matrix, another in each row, with a random sign for all of a sample.

    Scores of queries and keys are then all thousands below zero, or above it, and far from each other.
    """
    import torch

    if values.dim() < 2:
        return values
    *samples, rows, _ = values.shape
    order = torch.rand((*samples, rows), generator=generator).argsort(-1)
    signs = 2.0 * torch.randint(2, (*samples[:1], *([1] * len(samples[:-1]))), generator=generator) - 1
    sizes = FAR_ROW * (1 + order / FAR_ROW_STEPS)
    return (sizes * (signs.unsqueeze(-1) if samples else signs)).unsqueeze(-1).expand(values.shape).clone()


def _outlying(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return 1 for elements that lie far above the others of their row, -1 for those far below, else 0.

    Rows of the first half have some above, the others some below. Each half begins with both ends of a row, and goes
    on at random places. A number that a kernel leaves out of a sum then shows in a coarse type too.
    """
    import torch

    if not (values.dim() and values.numel()):
        return torch.zeros_like(values)
    width = values.shape[-1]
    ends, rows = torch.tensor(sorted({0, width - 1})), values.numel() // width
    half = (rows + 1) // 2
    each = min(width, MOST_IN_A_ROW, -(-width // half))
    order = torch.cat((ends, 1 + torch.randperm(max(0, width - 2), generator=generator)))
    columns = order[torch.arange(half * each) % width].view(half, each).repeat(2, 1)[:rows]
    signs = torch.where(torch.arange(rows) < half, 1.0, -1.0).unsqueeze(-1).expand(columns.shape)
    return torch.zeros(rows, width).scatter(-1, columns, signs).view(values.shape)


def _equal_pairs(values: torch.Tensor) -> torch.Tensor:
    """Return powers of two, with the first of each two samples in place of the second: in all operands the same."""
    import torch

    powers = nearest_powers(values)
    if not powers.dim():
        return powers
    samples = torch.arange(powers.shape[0])
    return powers.index_select(0, samples - samples % 2)


def _near_each_other(shares: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    import torch

    center = float(torch.rand((), generator=generator)) * 0.9
    return center + shares * 0.05


def _one_value(shares: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return shares.reshape(-1)[:1].expand(shares.numel()).reshape(shares.shape).clone()


def _with_few_bits(values: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Return numbers with so few significant bits that sums of thousands of equal ones are exact in any order.

    One running sum of other equal numbers errs to one side at each step. Numbers that would leave the range stay.
    """
    import torch

    significand, exponent = torch.frexp(values)
    coarse = torch.ldexp((significand * 2**CONSTANT_BITS).round() / 2**CONSTANT_BITS, exponent)
    return torch.where((low <= coarse) & (coarse <= high), coarse, values)


def _at_both_ends(shares: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    import torch

    upper = torch.rand(shares.shape, generator=generator) < 0.5
    return torch.where(upper, 1 - shares.pow(8), shares.pow(8))


_Kind = Callable[["torch.Tensor", "torch.Generator"], "torch.Tensor"]
_OF_BOTH: dict[InputKind, _Kind] = {
    "constant": _one_value,
    "ordered": lambda values, _: rising(values),
    "falling": lambda values, _: falling(values),
    "equal_rows": lambda values, _: _equal_pairs(values),
}
_KINDS: dict[InputKind, _Kind] = {
    **_OF_BOTH,
    "small": _near_each_other,
    "large": lambda shares, _: 0.9 + 0.1 * shares,
    "ties": lambda shares, _: (shares * 8).round() / 8,
    "heavy_tails": _at_both_ends,
    "alternating": lambda shares, _: 0.5 + _alternating(shares - 0.5),
    "one_sided": lambda shares, generator: 0.5 + _one_sided(shares - 0.5, generator),
}


def _around_zero(shares: torch.Tensor, kind: InputKind, zero: float, generator: torch.Generator) -> torch.Tensor:
    import torch

    if kind == "zeros":
        return torch.full_like(shares, zero)
    if kind == "sparse":
        return torch.where(_kept(shares, generator), shares, zero)
    if kind == "outliers":
        outlying = _outlying(shares, generator)
        return torch.where(outlying == 0, zero + (shares - zero) / OUTLIER, (1 + outlying) / 2)
    return shares


def _kept(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return which values a sparse operand keeps."""
    import torch

    return torch.rand(values.shape, generator=generator) < 0.05


def _wide_tails(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    import torch

    return values / torch.rand(values.shape, generator=generator).clamp(min=2.0**-6)


_NORMAL_KINDS: dict[InputKind, _Kind] = {
    **_OF_BOTH,
    "small": lambda values, _: values / 64,
    "large": lambda values, _: values * 16,
    "sparse": lambda values, generator: values * _kept(values, generator),
    "ties": lambda values, _: values.round().clamp(-2, 2),
    "heavy_tails": _wide_tails,
    "zeros": lambda values, _: values.new_zeros(values.shape),
    "alternating": lambda values, _: _alternating(values),
    "one_sided": _one_sided,
    "far": _far,
    "far_rows": _far_rows,
    "very_far": lambda values, generator: VERY_FAR * _far(values, generator),
    "beside_zero": lambda values, generator: values + BESIDE_ZERO * _sign(generator),
    "outliers": lambda values, generator: values + OUTLIER * _outlying(values, generator),
}
