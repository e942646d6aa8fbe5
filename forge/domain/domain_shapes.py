"""Shapes of a domain: the nearest one inside, those at its edges, random ones inside, and some just outside.

Every function needs a shape that lies inside, such as the task's own. So each answer exists, and lies where it says.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from forge.domain.kernel_domain import LARGEST_SIZE, Divisible, KernelDomain, NotAbove, ProductLimit

Sizes = dict[str, int]
FIRST_SIZES = 8
"""Number of sizes of one axis, from the smallest on, among which a shape is looked for. Chosen; the number of
combinations grows with a power of it, one for each axis."""
MOST_TRIED = 20_000
"""Number of shapes that are tried before a domain counts as narrow. Chosen; a larger number takes longer before a
narrow domain is refused."""
RANDOM_OUTSIDE = 4
"""Number of random sizes outside, of each axis, that are drawn anywhere and again above the largest size. Chosen;
each costs a question, which may compile a kernel anew."""
TOGETHER = 8
"""Number of shapes that lie outside in several axes at once, since a kernel may check one of two axes. Chosen; each
costs a question."""
FARTHEST = 8
"""Largest ratio of a random size to the largest size of its axis in the domain. If the axis has no limit, it is the
ratio to the size inside. Chosen; three octaves outside, whose operands still fit into memory."""
USUAL_SIZES = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256)
"""Sizes of heads and of blocks in use. A kernel whose domain lists some of them often checks less, as a multiple."""
SIXTEEN_BITS = 2**16
"""Size that a counter of 16 bits takes for none, and with a size inside added for that size."""
REPAIRS = 8
"""Number of times that each broken relation is repaired on the way to a shape inside. Chosen; a repair may break
another relation."""


def nearest_inside(domain: KernelDomain, shape: Mapping[str, int], inside: Mapping[str, int]) -> Sizes:
    """Return a shape of the domain near `shape`, or `inside` itself if none is found."""
    found = {axis: domain.axes[axis].nearest(size) if axis in domain.axes else size for axis, size in shape.items()}
    for _ in range(REPAIRS):
        broken = [one for one in domain.relations if not one.holds(found)]
        if not broken:
            return found
        for relation in broken:
            _repair(domain, relation, found)
    return found if domain.contains(found) else dict(inside)


def _repair(domain: KernelDomain, relation: Divisible | ProductLimit | NotAbove, found: Sizes) -> None:
    """Change the sizes so that a relation holds, if that is possible by changing one axis."""
    match relation:
        case Divisible(axis=axis, by=by):
            sizes = domain.sizes_of(axis)
            step = math.lcm(sizes.step, max(1, found[by]))
            for size in (max(step, found[axis] // step * step), -(-sizes.low // step) * step):
                if sizes.contains(size):
                    found[axis] = size
                    return
            found[by] = domain.sizes_of(by).at_most(found[axis])
        case ProductLimit(axes=axes, most=most):
            while math.prod(found[axis] for axis in axes) > most:
                longest = max(axes, key=lambda axis: found[axis] - domain.sizes_of(axis).low)
                rest = math.prod(found[axis] for axis in axes if axis != longest)
                smaller = domain.sizes_of(longest).at_most(max(found[longest] // 2, most // max(1, rest)))
                if smaller >= found[longest]:
                    return
                found[longest] = smaller
        case NotAbove(axis=axis, other=other):
            found[axis] = domain.sizes_of(axis).at_most(found[other])
            found[other] = domain.sizes_of(other).at_least(max(found[axis], found[other]))
        case _:
            assert_never(relation)


def edge_shapes(
    domain: KernelDomain, inside: Mapping[str, int], pinned: Callable[[str, Sizes], Sizes]
) -> list[Sizes]:
    """Return different shapes at the domain's edges, each with one axis at an edge, then limits of products.

    `pinned` may make the other axes smaller, so that a shape costs less; it gets the axis whose size must stay.
    """
    found = [
        pinned(axis, nearest_inside(domain, {**inside, axis: size}, inside))
        for axis in inside
        for size in _edges_of(domain, axis)
    ]
    found.append({**inside, **{axis: sizes.low for axis, sizes in domain.axes.items()}})
    for relation in domain.relations:
        found += [pinned(axis, shape) for axis, shape in _at_the_limit(domain, relation, inside)]
    return [shape for shape in _different(found) if domain.contains(shape)]


def _edges_of(domain: KernelDomain, axis: str) -> list[int]:
    """Return the smallest and the largest sizes of a named axis, or all that are listed."""
    if axis not in domain.axes:
        return []
    sizes = domain.axes[axis]
    if sizes.values is not None:
        return list(sizes.values)
    low, high = [sizes.low, sizes.low + sizes.step], [sizes.high - sizes.step, sizes.high]
    return [size for size in (low + high if sizes.most is not None else low) if sizes.contains(size)]


def _at_the_limit(
    domain: KernelDomain, relation: Divisible | ProductLimit | NotAbove, inside: Mapping[str, int]
) -> Iterator[tuple[str, Sizes]]:
    """Yield shapes in which a relation just holds, each with the axis that was changed."""
    match relation:
        case Divisible(axis=axis, by=by):
            for count in (1, 2, 3):
                yield axis, {**inside, axis: count * inside[by]}
        case ProductLimit(axes=axes, most=most):
            for axis in axes:
                rest = math.prod(inside[other] for other in axes if other != axis)
                yield axis, {**inside, axis: domain.sizes_of(axis).at_most(most // max(1, rest))}
        case NotAbove(axis=axis, other=other):
            yield axis, {**inside, axis: inside[other]}
            yield other, {**inside, other: domain.sizes_of(other).at_least(inside[axis])}
        case _:
            assert_never(relation)


def listed_shapes(domain: KernelDomain, inside: Mapping[str, int], rng: random.Random, most: int) -> list[Sizes]:
    """Return the shapes with each combination of sizes of the axes that list theirs, or `most` of them at random."""
    listed = {axis: sizes.values for axis, sizes in domain.axes.items() if sizes.values is not None}
    if len(listed) < 2:
        return []
    count = math.prod(map(len, listed.values()))
    chosen = rng.sample(range(count), most) if count > most else range(count)
    found = []
    for number in chosen:
        shape, rest = dict(inside), number
        for axis, values in listed.items():
            rest, place = divmod(rest, len(values))
            shape[axis] = values[place]
        found.append(shape)
    return [shape for shape in _different(found) if domain.contains(shape)]


def random_inside(
    domain: KernelDomain, inside: Mapping[str, int], most: Mapping[str, int], rng: random.Random
) -> Sizes:
    """Return a random shape of the domain; each octave of a size up to `most` is equally likely."""
    drawn: Sizes = {}
    for axis in inside:
        sizes = domain.sizes_of(axis)
        if sizes.values is not None:
            drawn[axis] = rng.choice(sizes.values)
            continue
        first = max(1, sizes.low)
        last = max(first, min(sizes.high, most[axis]))
        octaves = math.log2(last / first)
        drawn[axis] = sizes.nearest(int(first * 2 ** (rng.random() * octaves)))
    return nearest_inside(domain, drawn, inside)


def outside_shapes(
    domain: KernelDomain, inside: Mapping[str, int], least: Mapping[str, int]
) -> list[tuple[Sizes, str]]:
    """Return shapes just outside, each with the condition that it breaks.

    No size is below that of `least`, the operation's smallest sizes.
    """
    found = [
        ({**inside, axis: size}, " and ".join(sizes.conditions(axis)))
        for axis, sizes in domain.axes.items()
        for size in _sizes_outside(domain, axis, inside[axis])
    ]
    for relation in domain.relations:
        found += [(shape, relation.condition) for shape in _breaking(domain, relation, inside)]
    different = {tuple(sorted(shape.items())): (shape, condition) for shape, condition in reversed(found)}
    return [
        (shape, condition)
        for shape, condition in reversed(different.values())
        if not domain.contains(shape)
        and all(least.get(axis, 1) <= size <= LARGEST_SIZE for axis, size in shape.items())
    ]


def random_outside(
    domain: KernelDomain, inside: Mapping[str, int], least: Mapping[str, int], rng: random.Random
) -> list[tuple[Sizes, str]]:
    """Return random shapes outside, each with one axis changed and the condition that it breaks.

    Half of the draws begin at the axis's smallest size, half just above its largest one. All go up to `FARTHEST`
    times the largest, and each octave is equally likely. Draws that lie inside are left out.
    """
    found: list[tuple[Sizes, str]] = []
    for axis in inside:
        sizes = domain.sizes_of(axis)
        largest = max(1, inside[axis] if sizes.high == LARGEST_SIZE else sizes.high)
        limit = min(LARGEST_SIZE, FARTHEST * largest)
        starts = max(1, least.get(axis, 1)), min(limit, sizes.high + 1)
        for first in itertools.chain.from_iterable(itertools.repeat(starts, RANDOM_OUTSIDE)):
            shape = {**inside, axis: int(first * (limit / first) ** rng.random())}
            if not domain.contains(shape) and all(size >= least.get(one, 1) for one, size in shape.items()):
                found.append((shape, _broken(domain, shape)))
    return found


def outside_in_several(
    domain: KernelDomain, inside: Mapping[str, int], outside: list[tuple[Sizes, str]], rng: random.Random
) -> list[tuple[Sizes, str]]:
    """Return random shapes with two axes or more as in shapes of `outside`, and a condition that each breaks."""
    by_axis: dict[str, list[int]] = {}
    for shape, _ in outside:
        for axis in inside:
            if shape[axis] != inside[axis]:
                by_axis.setdefault(axis, []).append(shape[axis])
    found: list[tuple[Sizes, str]] = []
    for _ in range(TOGETHER if len(by_axis) > 1 else 0):
        axes = rng.sample(sorted(by_axis), rng.randint(2, len(by_axis)))
        shape = {**inside, **{axis: rng.choice(by_axis[axis]) for axis in axes}}
        if not domain.contains(shape):
            found.append((shape, f"{_broken(domain, shape)}, among others"))
    return found


def _broken(domain: KernelDomain, shape: Mapping[str, int]) -> str:
    """Return the first condition of the domain that a shape outside breaks."""
    axes = (
        " and ".join(sizes.conditions(axis)) for axis, sizes in domain.axes.items() if not sizes.contains(shape[axis])
    )
    relations = (relation.condition for relation in domain.relations if not relation.holds(shape))
    return next(itertools.chain(axes, relations))


def _sizes_outside(domain: KernelDomain, axis: str, size: int) -> list[int]:
    """Return sizes of one axis just below, above and between those of the domain."""
    sizes = domain.axes[axis]
    found = [
        sizes.low - 1,
        sizes.high + 1,
        sizes.high + sizes.step,
        2 * sizes.high,
        SIXTEEN_BITS,
        SIXTEEN_BITS + size,
    ]
    if sizes.values is not None:
        found += [beside for one in sizes.values for beside in (one - 1, one + 1)]
        found += [usual for usual in USUAL_SIZES if usual <= 2 * sizes.high]
    elif sizes.step > 1:
        found += [size + 1, size + sizes.step // 2, sizes.low + 1, 1]
    return [one for one in found if not sizes.contains(one)]


def _breaking(
    domain: KernelDomain, relation: Divisible | ProductLimit | NotAbove, inside: Mapping[str, int]
) -> list[Sizes]:
    """Return shapes that break one relation, by another size of one axis."""
    match relation:
        case Divisible(axis=axis):
            sizes = domain.sizes_of(axis)
            return [{**inside, axis: size} for size in (sizes.at_least(inside[axis] + 1), inside[axis] + 1)]
        case ProductLimit(axes=axes, most=most):
            shapes = []
            for axis in axes:
                rest = max(1, math.prod(inside[other] for other in axes if other != axis))
                size = domain.sizes_of(axis).at_least(most // rest + 1)
                shapes.append({**inside, axis: size})
            return shapes
        case NotAbove(axis=axis, other=other):
            return [
                {**inside, axis: domain.sizes_of(axis).at_least(inside[other] + 1)},
                {**inside, other: domain.sizes_of(other).at_most(inside[axis] - 1)},
            ]
        case _:
            assert_never(relation)


def holds_at_least(domain: KernelDomain, inside: Mapping[str, int], wanted: int) -> bool:
    """Return whether a search finds `wanted` different shapes of the domain, all without empty axes."""
    found: list[Sizes] = []
    for shape in itertools.islice(_candidates(domain, inside), MOST_TRIED):
        if domain.contains(shape) and shape not in found:
            found.append(shape)
        if len(found) >= wanted:
            return True
    return False


def _candidates(domain: KernelDomain, inside: Mapping[str, int]) -> Iterator[Sizes]:
    """Yield shapes: those that differ from `inside` in one axis, then products of some sizes of each axis."""
    choices = {axis: _some_sizes(domain, axis, size) for axis, size in inside.items()}
    yield dict(inside)
    for axis, sizes in choices.items():
        yield from ({**inside, axis: size} for size in sizes)
    yield from (dict(zip(choices, sizes, strict=True)) for sizes in itertools.product(*choices.values()))


def _some_sizes(domain: KernelDomain, axis: str, size: int) -> list[int]:
    """Return the first sizes of an axis, and those around `size`; all that are listed."""
    sizes = domain.sizes_of(axis)
    if sizes.values is not None:
        return [one for one in sizes.values if one]
    around = range(size - FIRST_SIZES * sizes.step, size + (FIRST_SIZES + 1) * sizes.step, sizes.step)
    first = range(sizes.low, sizes.low + FIRST_SIZES * sizes.step, sizes.step)
    return [one for one in dict.fromkeys((*first, *around)) if one and sizes.contains(one)]


def _different(shapes: list[Sizes]) -> list[Sizes]:
    return list({tuple(sorted(shape.items())): shape for shape in shapes}.values())
