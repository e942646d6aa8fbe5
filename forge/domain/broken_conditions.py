"""Says which conditions of a domain a shape breaks, and picks a shape for each condition that breaks it alone."""

from collections.abc import Mapping, Sequence

from forge.domain.kernel_domain import KernelDomain

Sizes = dict[str, int]


def broken_conditions(domain: KernelDomain, shape: Mapping[str, int]) -> frozenset[str]:
    """Return every condition that a shape breaks, as text: each limit of an axis is one, and so is each relation."""
    found: set[str] = set()
    for axis, sizes in domain.axes.items():
        if not sizes.contains(shape[axis]):
            alone = sizes.broken_limits(axis, shape[axis])
            found.update(alone or [" and ".join(sizes.conditions(axis))])
    return frozenset((*found, *(one.condition for one in domain.relations if not one.holds(shape))))


def one_for_each(domain: KernelDomain, outside: Sequence[tuple[Sizes, str]]) -> list[tuple[Sizes, str]]:
    """Return for each condition the first shape that breaks it with as few others as possible, and the condition.

    A kernel that checks all conditions but one is wrong only where this one is broken alone.
    """
    broken = [(shape, broken_conditions(domain, shape)) for shape, _ in outside]
    found: list[tuple[Sizes, str]] = []
    for condition in sorted({one for _, conditions in broken for one in conditions}):
        fewest = min((pair for pair in broken if condition in pair[1]), key=lambda pair: len(pair[1]))
        found.append((fewest[0], condition))
    return found
