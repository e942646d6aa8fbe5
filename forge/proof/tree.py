"""Checks Merkle proofs from known hashes to a trusted root: RFC 6962, section 2.1.

The algorithms are those of RFC 9162, sections 2.1.3.2 and 2.1.4.2, which check what RFC 6962 defines. `False` means
only that this proof doesn't lead to the root.
"""

import hashlib
from collections.abc import Sequence

HASH_BYTES = 32
"""Size of a SHA-256 hash in bytes."""


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\x00" + data).digest()


def included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Return True if `path` leads from the leaf hash at `index` (from 0) to the root of a tree of `size` leaves."""
    if not 0 <= index < size or not _hashes(leaf, root, *path):
        return False
    place, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = _node(sibling, found)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            found = _node(found, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def extends(old_size: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Return True if `path` shows that the tree of `size` leaves begins with the tree of `old_size` leaves."""
    if not 0 < old_size <= size or not _hashes(old_root, root, *path):
        return False
    if old_size == size:
        return not path and old_root == root
    steps = [old_root, *path] if old_size & (old_size - 1) == 0 else list(path)
    if not steps:
        return False
    place, last = old_size - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = steps[0]
    for sibling in steps[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = _node(sibling, old), _node(sibling, new)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            new = _node(new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and old == old_root and new == root


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _hashes(*values: bytes) -> bool:
    return all(len(value) == HASH_BYTES for value in values)
