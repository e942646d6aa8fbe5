"""Computes roots and proofs of the Merkle tree of RFC 6962, section 2.1, over leaf hashes, at any size.

Each function asks a `SubtreeHash` for the hash of a complete subtree. So it doesn't matter whether hashes are
computed or stored. `level` is the subtree's height, `place` its number from the left: it covers the leaves `place <<
level` up to `(place + 1) << level`.
"""

import hashlib
from collections.abc import Callable, Sequence

NODE = b"\x01"
"""Byte before the content of an inner node (RFC 6962, section 2.1)."""
SubtreeHash = Callable[[int, int], bytes]
"""Function from (level, place) to the hash of that complete subtree."""


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return hashlib.sha256(NODE + left + right).digest()


def complete_root(hashes: Sequence[bytes]) -> bytes:
    """Return the root over neighbouring hashes; their number is a power of two."""
    row = list(hashes)
    while len(row) > 1:
        row = [node_hash(row[place], row[place + 1]) for place in range(0, len(row), 2)]
    return row[0]


def tree_root(size: int, subtree: SubtreeHash) -> bytes:
    """Return the root of the tree over the first `size` leaves."""
    return _range_root(0, size, subtree) if size else hashlib.sha256().digest()


def inclusion_proof(index: int, size: int, subtree: SubtreeHash) -> list[bytes]:
    """Return the audit path of the leaf `index` (from 0) in the tree of `size` leaves, the leaf's sibling first."""
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} isn't in a tree of {size}")
    path: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _left_width(end - begin)
        if index < middle:
            path.append(_range_root(middle, end, subtree))
            end = middle
        else:
            path.append(_range_root(begin, middle, subtree))
            begin = middle
    return path[::-1]


def consistency_proof(old_size: int, size: int, subtree: SubtreeHash) -> list[bytes]:
    """Return the proof that the tree of `old_size` leaves is the beginning of that of `size` (section 2.1.2)."""
    if not 0 < old_size <= size:
        raise ValueError(f"a tree of {old_size} can't be the beginning of one of {size}")
    path: list[bytes] = []
    begin, end = 0, size
    while end != old_size:
        middle = begin + _left_width(end - begin)
        if old_size <= middle:
            path.append(_range_root(middle, end, subtree))
            end = middle
        else:
            path.append(_range_root(begin, middle, subtree))
            begin = middle
    if begin:  # otherwise it's the old root, which the other side has
        path.append(_range_root(begin, end, subtree))
    return path[::-1]


def _range_root(begin: int, end: int, subtree: SubtreeHash) -> bytes:
    """Return the root over the leaves `begin` to `end`; `begin` is a multiple of the widest part."""
    width = end - begin
    left = _left_width(width)
    if left * 2 == width or width == 1:
        level = width.bit_length() - 1
        return subtree(level, begin >> level)
    return node_hash(_range_root(begin, begin + left, subtree), _range_root(begin + left, end, subtree))


def _left_width(width: int) -> int:
    """Return the largest power of two below `width`."""
    return 1 << ((width - 1).bit_length() - 1) if width > 1 else 0
