"""Infers how a tensor's values are distributed from two draws of it, and draws fresh ones.

Only distributions that are plainly uniform, normal or a few values are inferred. Otherwise the file's own generator
draws, under the host's seed, in the reference's guest. So a triangular matrix stays triangular, and a row that sums
to one still does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, assert_never

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import Among, Family, Generated, Integers, Normal, Uniform

if TYPE_CHECKING:
    import torch

FEWEST_VALUES = 64
"""Number of values from which on a distribution can be inferred."""
MOST_SAMPLED = 2**20
"""Number of values of a draw that are examined, at most."""
LARGEST_INTEGER = 2**63 - 1
"""Largest 64-bit whole number, which no draw below a bound reaches."""
MOST_DISTINCT = 8
"""Number of different values up to which a tensor counts as a choice among values."""
ZERO_SHARE = 0.02
"""Share of zeros above which they count as a structure."""
SAME_WITHIN = 1e-5
"""Relative distance up to which sums or lengths of rows count as made equal."""
KINDS: tuple[InputKind, ...] = ("small", "large", "constant", "sparse", "ties", "heavy_tails", "zeros")
"""Kinds besides `normal`, whose values are as inferred. In order: near each other, at the upper end, one value,
mostly zeros, on a coarse grid, at both ends, zeros. Only kinds of normal values leave the range of the samples."""


def family_of(samples: Sequence[torch.Tensor]) -> Family:
    """Return the family of a tensor that was drawn under several seeds."""
    import torch

    first = samples[0]
    if first.dtype == torch.bool:
        return Among(values=(0.0, 1.0)) if _vary(samples) else Generated(structure="the same at every seed")
    if not _vary(samples):
        return Generated(structure="the same at every seed")
    together = torch.cat([one.reshape(-1)[:MOST_SAMPLED] for one in samples])
    if not first.is_floating_point():
        low, high = int(together.min()), int(together.max())
        return (
            Generated(structure="reaches the largest number")
            if high >= LARGEST_INTEGER
            else Integers(low=low, high=high)
        )
    values = together.double()
    if not bool(values.isfinite().all()):
        return Generated(structure="has NaN or infinities")
    structure = _structure(first)
    if structure is not None:
        return Generated(structure=structure)
    distinct = values[: 2**14].unique()
    if values.numel() >= FEWEST_VALUES and distinct.numel() <= MOST_DISTINCT:
        return Among(values=tuple(float(one) for one in distinct))
    return _distribution(values)


def _vary(samples: Sequence[torch.Tensor]) -> bool:
    return any(bool((one != samples[0]).any()) for one in samples[1:])


def _structure(tensor: torch.Tensor) -> str | None:
    import torch

    if tensor.numel() == 0:
        return "empty"
    if tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] and tensor.shape[-1] > 1:
        square = tensor.reshape(-1, *tensor.shape[-2:])[0].double()
        if torch.equal(square, square.T):
            return "symmetric"
    if float((tensor == 0).double().mean()) > ZERO_SHARE:
        return "has many zeros, as triangular and sparse matrices do"
    if tensor.dim() >= 1 and tensor.shape[-1] > 2:
        rows = tensor.double().reshape(-1, tensor.shape[-1])[:64]
        sums = rows.sum(-1)
        if bool((sums - sums[0]).abs().max() <= SAME_WITHIN * rows.abs().sum(-1).max()) and rows.shape[0] > 1:
            return "rows have one sum"
        if bool((rows.diff(dim=-1) >= 0).all()):
            return "rows are in order"
        norms = rows.norm(dim=-1)
        if rows.shape[0] > 1 and bool((norms - norms[0]).abs().max() <= SAME_WITHIN * norms.max()):
            return "rows have one length"
    return None


def _distribution(values: torch.Tensor) -> Family:
    low, high = float(values.min()), float(values.max())
    mean, deviation = float(values.mean()), float(values.std())
    if values.numel() < FEWEST_VALUES or deviation == 0:
        return Generated(structure="too few values to tell a distribution")
    flat = deviation * math.sqrt(12) / (high - low)
    shape = (values - mean) / deviation
    skewed, tailed = float(shape.pow(3).mean()), float(shape.pow(4).mean())
    # of a uniform distribution the fourth moment is 9/5, of a normal one 3
    margin = 12 / math.sqrt(values.numel())
    if abs(flat - 1) <= 0.05 + margin and abs(tailed - 1.8) <= 0.1 + margin:
        return Uniform(low=_rounded(low, high - low), high=_rounded(high, high - low))
    if abs(skewed) <= 0.1 + margin and abs(tailed - 3) <= 0.3 + 2 * margin:
        return Normal(mean=_rounded(mean, 4 * deviation), deviation=_rounded(deviation, deviation))
    return Generated(structure="neither uniform nor normal")


def _rounded(value: float, size: float) -> float:
    """Round to a step of at most a third of the spread, if that is near: samples seldom reach the ends themselves."""
    step = 10.0 ** math.floor(math.log10(size) - 0.5)
    near = round(value / step) * step
    return near if abs(near - value) <= 0.03 * size else value


def draw_family(
    family: Uniform | Normal | Among | Integers, sizes: tuple[int, ...], kind: InputKind, generator: torch.Generator
) -> torch.Tensor:
    """Draw fresh values of a family, in fp32 or int64."""
    import torch

    match family:
        case Uniform(low=low, high=high):
            shares = _KINDS.get(kind, _unchanged)(torch.rand(sizes, generator=generator), generator)
            zero = -low / (high - low)
            return low + (high - low) * (_with_zeros(shares, kind, zero, generator) if 0 <= zero <= 1 else shares)
        case Normal(mean=mean, deviation=deviation):
            values = torch.randn(sizes, generator=generator)
            return mean + deviation * _normal_kind(values, kind, generator)
        case Among(values=values):
            return torch.tensor(values)[torch.randint(len(values), sizes, generator=generator)]
        case Integers(low=low, high=high):
            return torch.randint(low, high + 1, sizes, generator=generator)
        case _:
            assert_never(family)


def _unchanged(shares: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return shares


def _near_each_other(shares: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    import torch

    center = float(torch.rand((), generator=generator)) * 0.9
    return center + shares * 0.05


def _one_value(shares: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return shares.reshape(-1)[:1].expand(shares.numel()).reshape(shares.shape).clone()


def _at_both_ends(shares: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    import torch

    upper = torch.rand(shares.shape, generator=generator) < 0.5
    return torch.where(upper, 1 - shares.pow(8), shares.pow(8))


_KINDS: dict[InputKind, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "small": _near_each_other,
    "large": lambda shares, _: 0.9 + 0.1 * shares,
    "constant": _one_value,
    "ties": lambda shares, _: (shares * 8).round() / 8,
    "heavy_tails": _at_both_ends,
}


def _with_zeros(shares: torch.Tensor, kind: InputKind, zero: float, generator: torch.Generator) -> torch.Tensor:
    import torch

    if kind == "zeros":
        return torch.full_like(shares, zero)
    if kind == "sparse":
        kept = torch.rand(shares.shape, generator=generator) < 0.05
        return torch.where(kept, shares, zero)
    return shares


def _normal_kind(values: torch.Tensor, kind: InputKind, generator: torch.Generator) -> torch.Tensor:
    import torch

    match kind:
        case "small":
            return values / 64
        case "large":
            return values * 16
        case "constant":
            return _one_value(values, generator)
        case "sparse":
            return values * (torch.rand(values.shape, generator=generator) < 0.05)
        case "ties":
            return values.round().clamp(-2, 2)
        case "heavy_tails":
            return values / torch.rand(values.shape, generator=generator).clamp(min=2.0**-6)
        case "zeros":
            return torch.zeros_like(values)
        case _:
            return values
