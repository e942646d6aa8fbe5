"""Operands that are no activations or weights: positions, counts, packed bytes, drawn as their specification says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from forge.domain.tensors import AnyByte, AsKind, Between, Chance, Counts, Indices, Parts, Slots, TensorSpec, Whole

if TYPE_CHECKING:
    import torch

SMALL_COUNTS = 64
"""Half of the counts are at most this many: what filters usually keep."""


def draw_numbers(
    spec: TensorSpec,
    shape: Mapping[str, int],
    before: Mapping[str, torch.Tensor],
    generator: torch.Generator,
    *,
    usual: bool,
) -> torch.Tensor:
    """Draw one operand, `before` being the operands in front of it; where it isn't to be usual, patterns by lot."""
    import torch

    sizes = spec.sizes(shape)
    count = math.prod(sizes)
    match spec.values:
        case Indices(axis=axis, extremes_of=operand):
            anywhere = torch.randint(max(1, shape[axis]), sizes, generator=generator)
            return _at_extremes(anywhere, before[operand], generator) if operand and shape[axis] else anywhere
        case Whole(below=below):
            return torch.randint(below, sizes, generator=generator)
        case AnyByte():
            return torch.randint(256, sizes, generator=generator, dtype=torch.uint8)
        case Between(low=low, high=high, by=by):
            share = torch.rand(sizes, generator=generator)
            return low + (high - low) * share if by == "difference" else low * (high / low) ** share
        case Chance():
            return torch.rand(sizes, generator=generator)
        case Counts(axis=axis):
            return _counts(sizes, shape[axis], generator)
        case Parts(axis=axis):
            return _parts(count, shape[axis], generator, usual=usual).view(sizes)
        case Slots(axis=axis):
            return _slots(count, shape[axis], generator, usual=usual).view(sizes)
        case AsKind():
            raise ValueError(f"{spec.name} follows the kind of workload")
        case _:
            assert_never(spec.values)


def _at_extremes(anywhere: torch.Tensor, ranked: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A quarter where their row is largest, a quarter where it is smallest, the others as they are."""
    import torch

    share, values = torch.rand(anywhere.shape, generator=generator), ranked.float()
    return torch.where(share < 0.25, values.argmax(-1), torch.where(share < 0.5, values.argmin(-1), anywhere))


def _counts(sizes: tuple[int, ...], size: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    low, high = Counts.ends(size)
    wide = torch.randint(low, high, sizes, generator=generator)
    small = torch.randint(low, min(high, SMALL_COUNTS), sizes, generator=generator)
    return torch.where(torch.rand(sizes, generator=generator) < 0.5, small, wide)


def _lot(below: int, generator: torch.Generator) -> int:
    import torch

    return int(torch.randint(max(1, below), (1,), generator=generator))


USUAL, PARTS_PATTERNS, SLOTS_PATTERNS = 0, 6, 5


def _parts(count: int, total: int, generator: torch.Generator, *, usual: bool) -> torch.Tensor:
    """Some left out; or none, all alike, one that has everything, less than everything, nothing at all."""
    import torch

    order = torch.randperm(count, generator=generator)
    match USUAL if usual or not count else _lot(PARTS_PATTERNS, generator):
        case 0:
            return _shared_out(count, total, order[: Parts.filled(count, total)], generator)
        case 1:
            return _shared_out(count, total, order[:total], generator)
        case 2:
            return total // count + (order < total % count).long()
        case 3:
            return total * (order == 0).long()
        case 4:
            less = _lot(total, generator)
            return _shared_out(count, less, order[:less], generator)
        case _:
            return torch.zeros(count, dtype=torch.int64)


def _shared_out(count: int, total: int, filled: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One for each part that isn't to be zero, and the rest where chance, of uneven odds, puts it."""
    import torch

    parts = torch.zeros(count, dtype=torch.int64)
    parts[filled] = 1
    rest = total - filled.numel()
    if rest and filled.numel():
        odds = torch.rand(filled.numel(), generator=generator).square() + 0.01
        drawn = torch.multinomial(odds, rest, replacement=True, generator=generator)
        parts[filled] += torch.bincount(drawn, minlength=filled.numel())
    return parts


def _slots(count: int, size: int, generator: torch.Generator, *, usual: bool) -> torch.Tensor:
    """Scattered, the last one among them; or all that can be taken, two runs up or down, none at all."""
    import torch

    order = torch.randperm(count, generator=generator)
    all_taken = min(count, size)
    start = _lot(size - all_taken + 1, generator)
    runs = torch.arange(start, start + all_taken).roll(_lot(all_taken, generator))
    match USUAL if usual else _lot(SLOTS_PATTERNS, generator):
        case 0:
            return _filled(count, order, _scattered(Slots.taken(count, size), size, generator))
        case 1:
            return _filled(count, order, _scattered(all_taken, size, generator))
        case 2:
            return _filled(count, torch.arange(count), runs)
        case 3:
            return _filled(count, torch.arange(count), runs.flip(0))
        case _:
            return torch.full((count,), -1)


def _scattered(taken: int, size: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    chosen = torch.randperm(size, generator=generator)[:taken]
    if taken and not bool((chosen == size - 1).any()):
        chosen[0] = size - 1
    return chosen


def _filled(count: int, order: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    import torch

    filled = torch.full((count,), -1)
    filled[order[: slots.numel()]] = slots
    return filled
