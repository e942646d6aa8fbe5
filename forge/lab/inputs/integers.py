"""Draws operands that aren't activations or weights: positions, counts, packed bytes, as their specification says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, assert_never

from forge.domain.tensors import AnyByte, AsKind, Between, Chance, Counts, Indices, Parts, Slots, TensorSpec, Whole
from forge.lab.inputs.distributions import random_below
from forge.lab.inputs.seeded import TURNS

if TYPE_CHECKING:
    import torch

DEFAULT_SHARE = 0.125
"""Share of the entries that have their rule's default, in draws of unusual values. Chosen; most are other numbers."""
SMALL_COUNTS = 64
"""Largest count in half of the draws, as large as filters usually keep."""


def draw_numbers(
    spec: TensorSpec,
    shape: Mapping[str, int],
    earlier_operands: Mapping[str, torch.Tensor],
    generator: torch.Generator,
    *,
    usual: bool,
) -> torch.Tensor:
    """Draw one operand, with the sizes of `spec` at `shape`; `earlier_operands` are those drawn before it.

    If it isn't `usual`, the seed's remainder chooses the pattern, so that draws in turn have all of them.
    """
    import torch

    sizes = spec.sizes(shape)
    count = math.prod(sizes)
    match spec.values:
        case Indices(axis=axis, extremes_of=operand):
            indices = torch.randint(max(1, shape[axis]), sizes, generator=generator)
            ranked = earlier_operands[operand] if operand and shape[axis] else None
            pointed = _at_extremes(indices, ranked, shape[axis], generator)
            return pointed if usual else _alike(pointed, None, generator)
        case Whole(below=below):
            whole = torch.randint(below, sizes, generator=generator)
            return whole if usual else _alike(whole, below // 2, generator)
        case AnyByte():
            return torch.randint(256, sizes, generator=generator, dtype=torch.uint8)
        case Between(low=low, high=high, by=by, default=default):
            share = torch.rand(sizes, generator=generator)
            share = share if usual else _with_ends(share, generator)
            between = low + (high - low) * share if by == "difference" else low * (high / low) ** share
            return between if usual else _alike(between, default, generator)
        case Chance():
            return torch.rand(sizes, generator=generator)
        case Counts(axis=axis, default=default):
            counts = _counts(sizes, shape[axis], generator)
            return counts if usual else _alike(_with_far(counts, generator), default, generator)
        case Parts(axis=axis):
            pattern = _PARTS[0 if usual else generator.initial_seed() % TURNS % len(_PARTS)]
            return pattern(count, shape[axis], generator).view(sizes)
        case Slots(axis=axis):
            pattern = _SLOTS[0 if usual else generator.initial_seed() % TURNS % len(_SLOTS)]
            return pattern(count, shape[axis], generator).view(sizes)
        case AsKind():
            raise ValueError(f"{spec.name} follows the kind of workload")
        case _:
            assert_never(spec.values)


def _with_ends(share: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Replace an eighth of the numbers by zero and an eighth by one."""
    import torch

    rng = torch.rand(share.shape, generator=generator)
    return share.masked_fill(rng < 0.125, 0.0).masked_fill(rng >= 0.875, 1.0)


def _alike(drawn: torch.Tensor, default: float | None, generator: torch.Generator) -> torch.Tensor:
    """Give all entries the default in a quarter of the draws, the same for all operands, as most requests do.

    In another quarter give one number to all, in all operands. In the others each operand has the default or one
    number with a chance of a quarter each. Otherwise give the default to an eighth of the entries.
    """
    import torch

    share, own = torch.rand(drawn.shape, generator=generator), random_below(4, generator)
    turn = generator.initial_seed() % 4
    way = turn if turn < 2 else own
    if way == 0 and default is not None:
        return torch.full_like(drawn, default)
    if way == 1 and drawn.numel():
        return drawn.reshape(-1)[:1].expand(drawn.numel()).reshape(drawn.shape).clone()
    return drawn if default is None else drawn.masked_fill(share < DEFAULT_SHARE, default)


def _at_extremes(
    anywhere: torch.Tensor, ranked: torch.Tensor | None, size: int, generator: torch.Generator
) -> torch.Tensor:
    """Point a quarter of the indices to their row's maximum, a quarter to its minimum, an eighth to either end."""
    import torch

    if ranked is None:
        return anywhere
    share, values = torch.rand(anywhere.shape, generator=generator), ranked.float()
    chosen = anywhere.masked_fill(share >= 0.75, size - 1).masked_fill(share >= 0.875, 0)
    return torch.where(share < 0.25, values.argmax(-1), torch.where(share < 0.5, values.argmin(-1), chosen))


def _counts(sizes: tuple[int, ...], size: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    low, high = Counts.ends(size)
    wide = torch.randint(low, high, sizes, generator=generator)
    small = torch.randint(low, min(high, SMALL_COUNTS), sizes, generator=generator)
    return torch.where(torch.rand(sizes, generator=generator) < 0.5, small, wide)


FAR_COUNTS, FAR_SHARE = (2**15, 2**30, 2**31 - 1), 0.125
"""Counts beyond any axis, as programs give for all positions, and the share of entries that get one. Four times one
of the last two doesn't fit into 32 bits, and the first one doesn't fit into 16."""


def _with_far(counts: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    import torch

    far = torch.tensor(FAR_COUNTS)[torch.randint(len(FAR_COUNTS), counts.shape, generator=generator)]
    return torch.where(torch.rand(counts.shape, generator=generator) < FAR_SHARE, far, counts)


TILE_POWERS = 8
"""Number of powers of two that a tile may have, from 1 on; kernels have tiles of up to 128 rows."""
USUAL_PAGE = 16
"""Number of slots in a page that vLLM has unless told otherwise."""
PAGE_POWERS = 6
"""Number of powers of two that a page of a cache may have, from 8 slots on; engines have pages of 16 to 256."""
Pattern = Callable[[int, int, "torch.Generator"], "torch.Tensor"]
"""Function of a number of entries, a total or a size, and a generator; it returns the entries."""


def _some_parts(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    return _shared_out(count, total, Parts.filled(count, total), generator)


def _all_parts(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    return _shared_out(count, total, min(count, total), generator)


def _less_than_all(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    less = random_below(total, generator)
    return _shared_out(count, less, min(count, less), generator)


def _parts_alike(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    order = torch.randperm(count, generator=generator)
    return total // max(1, count) + (order < total % max(1, count)).long()


def _all_in_one(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    return total * (torch.randperm(count, generator=generator) == 0).long()


def _whole_tiles(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    """Return parts of whole tiles, of a random power of two up to the total; what is left over has no part."""
    tile = 2 ** random_below(min(TILE_POWERS, total.bit_length()), generator)
    tiles = total // tile
    return tile * _shared_out(count, tiles, min(count, tiles), generator)


def _nothing(count: int, _: int, __: torch.Generator) -> torch.Tensor:
    import torch

    return torch.zeros(count, dtype=torch.int64)


def _shared_out(count: int, total: int, filled: int, generator: torch.Generator) -> torch.Tensor:
    """Give one to each of `filled` random parts, and distribute the rest over them with uneven odds."""
    import torch

    parts, chosen = torch.zeros(count, dtype=torch.int64), torch.randperm(count, generator=generator)[:filled]
    parts[chosen] = 1
    rest = total - filled
    if rest and filled:
        odds = torch.rand(filled, generator=generator).square() + 0.01
        drawn = torch.multinomial(odds, rest, replacement=True, generator=generator)
        parts[chosen] += torch.bincount(drawn, minlength=filled)
    return parts


def _some_slots(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    return _scattered(count, size, Slots.taken(count, size), generator)


def _all_slots(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    return _scattered(count, size, min(count, size), generator)


def _runs_up(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return two rising runs of slots, the second one in front of the first."""
    import torch

    taken = min(count, size)
    first = random_below(size - taken + 1, generator)
    runs = torch.arange(first, first + taken).roll(random_below(taken, generator))
    return torch.cat([runs, torch.full((count - taken,), -1)])


def _one_run(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return slots that follow each other, as those of a request's tokens do in an empty cache."""
    import torch

    taken = min(count, size)
    first = random_below(size - taken + 1, generator)
    return torch.cat([torch.arange(first, first + taken), torch.full((count - taken,), -1)])


def _padded_run(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return the longer of two random runs of slots, and no slots after it: a batch is mostly filled up a little."""
    import torch

    taken = max(random_below(min(count, size) + 1, generator) for _ in range(2))
    first = random_below(size - taken + 1, generator)
    return torch.cat([torch.arange(first, first + taken), torch.full((count - taken,), -1)])


def _pages(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return slots of whole pages in any order, the last of them in part, as a cache in pages gives them.

    Every other page is of usual size.
    """
    import torch

    any_page = 2 ** (3 + random_below(PAGE_POWERS, generator))
    page = any_page if generator.initial_seed() // len(_SLOTS) % 2 else USUAL_PAGE
    while page > 8 and 2 * page > min(count, size):
        page //= 2
    starts = page * torch.randperm(size // page, generator=generator)
    slots = (starts.unsqueeze(-1) + torch.arange(page)).flatten()[:count]
    return torch.cat([slots, torch.full((count - len(slots),), -1)])


def _runs_apart(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return two rising runs of slots with a gap between them, as in two pages of a cache, if there is room."""
    import torch

    taken = min(count, size)
    room = size - taken
    first = random_below(max(1, room), generator)
    runs = torch.arange(first, first + taken)
    if room and taken > 1:
        runs[1 + random_below(taken - 1, generator) :] += 1 + random_below(room - first, generator)
    return torch.cat([runs, torch.full((count - taken,), -1)])


def _runs_down(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    return _runs_up(count, size, generator).flip(0)


def _run_out_of_order(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return a rising run of slots with both ends in place, two inner slots exchanged, and mostly one left out."""
    import torch

    taken = min(count, size)
    first = random_below(size - taken + 1, generator)
    run = torch.arange(first, first + taken)
    if taken > 3:
        one, other, left_out = (torch.randperm(taken - 2, generator=generator) + 1)[[0, 1, -1]].tolist()
        run[[one, other]] = run[[other, one]]
        run[left_out] = -1 if random_below(4, generator) else run[left_out]
    return torch.cat([run, torch.full((count - taken,), -1)])


def _no_slot(count: int, _: int, __: torch.Generator) -> torch.Tensor:
    import torch

    return torch.full((count,), -1)


def _scattered(count: int, size: int, taken: int, generator: torch.Generator) -> torch.Tensor:
    """Return `taken` different slots, including the last one, at random entries."""
    import torch

    slots, chosen = torch.full((count,), -1), torch.randperm(size, generator=generator)[:taken]
    if taken and not bool((chosen == size - 1).any()):
        chosen[0] = size - 1
    slots[torch.randperm(count, generator=generator)[:taken]] = chosen
    return slots


_PARTS: tuple[Pattern, ...] = (
    _some_parts,
    _all_parts,
    _less_than_all,
    _parts_alike,
    _whole_tiles,
    _all_in_one,
    _nothing,
)
"""Patterns of parts; the first one is the usual one."""
_SLOTS: tuple[Pattern, ...] = (
    *(_some_slots, _all_slots, _runs_up, _runs_down, _run_out_of_order, _no_slot),
    *(_one_run,) * 3,
    *(_runs_apart, _padded_run, _pages) * 2,
)
"""Patterns of slots; the first one is the usual one. The last four come more often. Kernels have code of their own
for one run and for pages, and take other slots that rise for one."""
