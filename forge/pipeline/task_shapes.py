"""Parses the shapes of a task: one or more, each axis a size or a range of sizes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from forge.domain.own_operation import BATCH
from forge.domain.task import MOST_FURTHER_SHAPES
from forge.domain.tensors import Shape, parse_shape, shape_text
from forge.errors import UsageError

MOST_SHAPES = 1 + MOST_FURTHER_SHAPES
"""Largest number of shapes of a task."""
SIZES_OF_RANGE = 4
"""Number of sizes that stand for one range: both ends, and sizes in between at about equal factors."""
_RANGE = re.compile(r"([0-9]{1,10})\.\.([0-9]{1,10})")
"""Pattern of a range of sizes, as in `1..512`."""


def parse_shapes(untrusted_texts: Sequence[str], axes: tuple[str, ...]) -> tuple[Shape, ...]:
    """Return the task's shapes, the main one first; raise UsageError for a bad, repeated or excessive one.

    The main shape is the first one named; of a range it is the one with the largest sizes.
    """
    shapes = [shape for text in untrusted_texts for shape in _expanded(text, axes)]
    for place, shape in enumerate(shapes):
        if shape in shapes[:place]:
            raise UsageError(f"shape {shape_text(shape)} is given twice: expected each shape once")
    if len(shapes) > MOST_SHAPES:
        raise UsageError(
            f"{len(shapes)} shapes: expected at most {MOST_SHAPES}, since each is timed by itself; a range stands "
            f"for up to {SIZES_OF_RANGE} sizes"
        )
    return tuple(shapes)


def parse_own_shapes(untrusted_texts: Sequence[str]) -> tuple[Shape, ...]:
    """Return further shapes for a reference file, whose axes aren't known yet: those of the first text.

    Raises UsageError for a bad shape, and for more than MOST_FURTHER_SHAPES.
    """
    if not untrusted_texts:
        return ()
    named = (item.partition("=")[0].strip() for item in untrusted_texts[0].split(","))
    shapes = parse_shapes(untrusted_texts, tuple(dict.fromkeys((BATCH, *named))))
    if len(shapes) > MOST_FURTHER_SHAPES:
        raise UsageError(f"{len(shapes)} shapes besides the file's own: expected at most {MOST_FURTHER_SHAPES}")
    return shapes


def _expanded(untrusted_text: str, axes: tuple[str, ...]) -> Iterator[Shape]:
    """Yield the shapes that a text stands for, the largest first."""
    ranges = {}
    items = []
    for item in untrusted_text.split(","):
        axis, equals, size = (part.strip() for part in item.partition("="))
        found = _RANGE.fullmatch(size)
        if found is not None:
            ranges[axis] = _ends(untrusted_text, axis, int(found[1]), int(found[2]), axes)
            size = found[2]
        items.append(f"{axis}{equals}{size}")
    largest = parse_shape(",".join(items), axes)
    sizes = [_sizes(*ends, count=_count(ranges)) for ends in ranges.values()]
    for chosen in product(*sizes):
        yield {**largest, **dict(zip(ranges, chosen, strict=True))}


def _ends(text: str, axis: str, low: int, high: int, axes: tuple[str, ...]) -> tuple[int, int]:
    """Return the ends of a range; raise UsageError for an end that isn't a size, or a range of fewer than two."""
    parse_shape(",".join(f"{one}={low if one == axis else 1}" for one in axes), axes)
    if low >= high:
        raise UsageError(f"bad range {axis}={low}..{high} in {text!r}: expected the smaller size first, as 1..512")
    return low, high


def _count(ranges: Mapping[str, object]) -> int:
    """Return the number of sizes for each range with which all combinations are few enough."""
    return next((n for n in range(SIZES_OF_RANGE, 2, -1) if n ** len(ranges) <= MOST_SHAPES), 2)


def _sizes(low: int, high: int, *, count: int) -> list[int]:
    """Return up to `count` sizes from high to low, at about equal factors; those in between are powers of two."""
    steps = (low * (high / low) ** (place / (count - 1)) for place in range(1, count - 1))
    between = {1 << round(step).bit_length() - 1 if step >= 1 else 1 for step in steps}
    return sorted({low, high, *(size for size in between if low < size < high)}, reverse=True)
