"""Keeps the Merkle tree of one ledger beside its events.

The leaves are the events' own hashes. Every fourth level of inner nodes is stored: one row for 16 events, one more
for 256, and so on. The transaction that completes a subtree stores its node. A row is never changed, so the table is
append-only like `event`. The right edge of the tree is derived from it and at most 15 leaves.
"""

import sqlite3

from forge.ledger.merkle import complete_root, consistency_proof, inclusion_proof, tree_root
from forge.ledger.statements import INSERT_NODE, SELECT_LEAVES, SELECT_NODE_COUNT, SELECT_NODES

STRIDE = 4
"""Distance between two stored levels. With four, the stored nodes are a fifteenth of the events, and a subtree is
derived from at most 8 of them."""
WIDTH = 1 << STRIDE
"""Number of nodes of one stored level under a node of the next."""
_SUBTREES_AT_ONCE = 1024
"""Number of subtrees that are derived before the nodes that were read for them are forgotten. Chosen; it bounds
memory, and fewer need more queries."""


class StoredTree:
    """The tree over the first `size` events, read inside one transaction; nodes that were read are kept."""

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self.size = size
        self._connection = connection
        self._blocks: dict[tuple[int, int], list[bytes]] = {}

    def root(self, size: int | None = None) -> bytes:
        """Return the root at `size`, by default that of the whole tree."""
        return tree_root(self.size if size is None else size, self.subtree)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Return the audit path of event `index + 1` in the tree of the first `size` events."""
        return inclusion_proof(index, size, self.subtree)

    def consistency(self, old_size: int, size: int) -> list[bytes]:
        """Return the proof that the first `old_size` events are the beginning of the first `size`."""
        return consistency_proof(old_size, size, self.subtree)

    def subtree(self, level: int, place: int) -> bytes:
        """Return the hash of a complete subtree, from the nearest stored level at or below it."""
        stored = level - level % STRIDE
        first = place << (level - stored)
        block = self._block(stored, first // WIDTH)
        start = first % WIDTH
        return complete_root(block[start : start + (1 << (level - stored))])

    def _block(self, level: int, number: int) -> list[bytes]:
        """Return up to 16 hashes of a stored level, from `16 * number` on; nodes that aren't stored are derived."""
        known = self._blocks.get((level, number))
        if known is not None:
            return known
        first = number * WIDTH
        if level == 0:
            rows = self._connection.execute(SELECT_LEAVES, (first, min(first + WIDTH, self.size)))
        else:
            rows = self._connection.execute(SELECT_NODES, (level, first, min(first + WIDTH, self.size >> level)))
        block = [row[0] for row in rows]
        absent = range(first + len(block), min(first + WIDTH, self.size >> level))
        block += [complete_root(self._block(level - STRIDE, place)) for place in absent]
        self._blocks[level, number] = block
        return block


def grow(connection: sqlite3.Connection, size: int) -> None:
    """Store every subtree that the first `size` events complete and that isn't stored yet."""
    level = STRIDE
    while size >> level:
        (stored,) = connection.execute(SELECT_NODE_COUNT, (level,)).fetchone()
        for first in range(stored, size >> level, _SUBTREES_AT_ONCE):
            tree = StoredTree(connection, size)
            places = range(first, min(first + _SUBTREES_AT_ONCE, size >> level))
            connection.executemany(INSERT_NODE, [(level, place, tree.subtree(level, place)) for place in places])
        level += STRIDE
