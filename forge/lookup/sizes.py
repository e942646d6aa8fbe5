"""Sizes of axes: which numbers can be one, and how far two are apart."""

from math import log2

TYPE_CHECKING = False
if TYPE_CHECKING:
    Sizes = tuple[int, ...]

LARGEST_SIZE = 2**63 - 1
"""Largest size of an axis: tensors count their elements in 64 bits with a sign."""


def octaves(sizes: "Sizes") -> tuple[float, ...]:
    """Return each size's logarithm to base 2; that of 0 is that of 1."""
    return tuple([log2(size or 1) for size in sizes])


def is_size(untrusted: object) -> bool:
    """Return whether it is a whole number that a shape may have; True isn't."""
    return type(untrusted) is int and 0 <= untrusted <= LARGEST_SIZE
