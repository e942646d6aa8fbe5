"""Decides whether one domain holds all of another, from their conditions alone."""

import math
from collections.abc import Sequence
from typing import assert_never

from forge.domain.kernel_domain import (
    LARGEST_SIZE,
    MOST_LISTED,
    AxisDomain,
    Divisible,
    KernelDomain,
    NotAbove,
    ProductLimit,
    effective_layouts,
)
from forge.domain.tensors import LayoutName


def uncovered(declared: KernelDomain | None, wanted: KernelDomain, contract: Sequence[LayoutName]) -> str | None:
    """Return the first condition of `declared` that `wanted` doesn't imply; None if it holds all of `wanted`.

    What can't be shown isn't assumed. Both must be resolved for the same operation.
    """
    if declared is None:
        return None
    for axis, sizes in declared.axes.items():
        if not _holds_all(sizes, wanted.axes.get(axis)):
            return " and ".join(sizes.conditions(axis))
    for relation in declared.relations:
        if relation not in wanted.relations and not _implied(relation, wanted):
            return relation.condition
    layouts = effective_layouts(declared, contract)
    if not set(effective_layouts(wanted, contract)) <= set(layouts):
        return f"layouts in {'|'.join(layouts)}"
    if (declared.alignment_bytes or 1) > (wanted.alignment_bytes or 1):
        return f"alignment == {declared.alignment_bytes}"
    return None


def _holds_all(sizes: AxisDomain, wanted: AxisDomain | None) -> bool:
    if wanted is None:
        return sizes.values is None and sizes.low == 0 and sizes.step == 1 and sizes.high == LARGEST_SIZE
    listed = _listed(wanted)
    if listed is not None:
        return all(map(sizes.contains, listed))
    return (
        sizes.values is None
        and sizes.low <= wanted.low
        and wanted.high <= sizes.high
        and wanted.step % sizes.step == 0
    )


def _listed(sizes: AxisDomain) -> tuple[int, ...] | None:
    """Return every size of an axis if they are few, otherwise None."""
    if sizes.values is not None:
        return sizes.values
    if (sizes.high - sizes.low) // sizes.step < MOST_LISTED:
        return tuple(range(sizes.low, sizes.high + 1, sizes.step))
    return None


def _implied(relation: Divisible | ProductLimit | NotAbove, wanted: KernelDomain) -> bool:
    """Return whether the sizes of `wanted` alone show that a relation holds."""
    match relation:
        case Divisible(axis=axis, by=by):
            one, other = wanted.axes.get(axis), wanted.axes.get(by)
            sizes, divisors = (_listed(one) if one else None), (_listed(other) if other else None)
            if one is None or divisors is None or 0 in divisors:
                return False
            if sizes is not None:
                return all(size % divisor == 0 for size in sizes for divisor in divisors)
            return all(one.step % divisor == 0 for divisor in divisors)
        case ProductLimit(axes=axes, most=most):
            narrower = (
                one.most <= most
                for one in wanted.relations
                if isinstance(one, ProductLimit) and set(one.axes) == set(axes)
            )
            return any(narrower) or math.prod(wanted.sizes_of(axis).high for axis in axes) <= most
        case NotAbove(axis=axis, other=other_axis):
            return wanted.sizes_of(axis).high <= wanted.sizes_of(other_axis, least=0).low
        case _:
            assert_never(relation)
