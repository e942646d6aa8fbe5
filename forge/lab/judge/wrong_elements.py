"""Says which elements of an output are wrong: all beyond a column, every second row, or how many.

Each sentence is exactly true of the mask that it is made from, so that an author may rely on it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.lab.largest import first_largest

if TYPE_CHECKING:
    import torch

LISTED = 4
"""Number of indices along one axis that are named one by one, at most. Chosen; a message stays on a few lines."""
FEWEST_IN_STEP = 3
"""Number of indices with equal distances from which on they are a step, not a chance."""


@dataclass(frozen=True)
class WrongElements:
    """The place of the wrong elements of one output."""

    said: str
    """Clause for a message."""
    begins: int | None = None
    """Index along some axis from which on the elements are wrong, and before which none is; None without one."""


@dataclass(frozen=True)
class _Along:
    """The indices along one axis to which wrong elements are confined."""

    count: int
    said: str | None = None
    """Condition that they meet; None if all indices are among them, or if no short condition names them."""
    begins: int | None = None


def wrong_elements(wrong: torch.Tensor, axes: Sequence[str]) -> WrongElements:
    """Return where a mask is true; it has one axis for each name in `axes`. Some element must be wrong."""
    count, total = int(wrong.sum()), wrong.numel()
    if count == total:
        return WrongElements("every element is wrong" if total > 1 else "it is the only element")
    places = [_indices(wrong, axis) for axis in range(wrong.dim())]
    along = [_along(name, found, size) for name, found, size in zip(axes, places, wrong.shape, strict=True)]
    inside = math.prod(one.count for one in along)
    conditions = " and ".join(one.said for one in along if one.said is not None)
    begins = next((one.begins for one in along if one.begins is not None), None)
    if count == 1:
        return WrongElements(f"the other {total - 1} are right" if total > 2 else "the other one is right", begins)
    if count == inside:
        return WrongElements(f"wrong are the {count} elements with {conditions}, all others are right", begins)
    first = int(first_largest(wrong.flatten()))
    if count == total - first:
        return WrongElements(f"wrong are the last {count} of {total} elements in the order of memory", begins=first)
    if not conditions:
        return WrongElements(f"wrong are {count} of {total} elements")
    return WrongElements(f"wrong are {count} of the {inside} elements with {conditions}, and no others", begins)


def _indices(wrong: torch.Tensor, axis: int) -> list[int]:
    """Return the indices along an axis that have a wrong element."""
    others = [one for one in range(wrong.dim()) if one != axis]
    some = wrong.any(dim=others) if others else wrong
    return [int(one) for one in some.nonzero().flatten()]


def _along(name: str, found: Sequence[int], size: int) -> _Along:
    first, last, count = found[0], found[-1], len(found)
    if count == last - first + 1 < size:
        begins = first if last == size - 1 else None
        if first == last:
            return _Along(count, f"{name} = {first}", begins)
        if begins is not None:
            return _Along(count, f"{name} >= {first}", begins)
        return _Along(count, f"{name} <= {last}" if first == 0 else f"{first} <= {name} <= {last}")
    steps = {after - before for before, after in itertools.pairwise(found)}
    if count < size and len(steps) == 1 and count >= FEWEST_IN_STEP:
        listed = ", ".join(map(str, found[:FEWEST_IN_STEP]))
        return _Along(count, f"{name} = {listed}{'' if count == FEWEST_IN_STEP else f', ... {last}'}")
    if count < size and count <= LISTED and count <= size // 2:
        return _Along(count, f"{name} = {', '.join(map(str, found))}")
    return _Along(size)
