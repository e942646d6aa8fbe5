"""Derives the Merkle tree for the audit, in one pass over the leaves, and checks the stored nodes."""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator

from forge.ledger.audit.envelope import hex_of
from forge.ledger.audit.report import AuditProblem

_STORED_LEVELS = 4
"""Distance between two stored levels of the tree: one level in four is stored."""
_HASH_BYTES = 32
"""Length of a SHA-256 hash in bytes."""


class Frontier:
    """The complete subtrees over the leaves so far, widest first, and the check of the stored nodes."""

    def __init__(self, stored: "StoredNodes", sizes: Collection[int]) -> None:
        self.size = 0
        self.roots: dict[int, bytes] = {}
        """Size -> root, for each of `sizes` that was reached."""
        self._sizes = frozenset(sizes)
        self._stored = stored
        self._peaks: list[bytes] = []

    def add(self, leaf: object) -> list[AuditProblem]:
        """Add the next leaf; return the problems of the stored nodes that it completes."""
        found: list[AuditProblem] = []
        node = leaf if isinstance(leaf, bytes) and len(leaf) == _HASH_BYTES else bytes(_HASH_BYTES)
        self.size += 1
        level, rest = 0, self.size
        while rest & 1 == 0:
            node = hashlib.sha256(b"\x01" + self._peaks.pop() + node).digest()
            level, rest = level + 1, rest >> 1
            if level % _STORED_LEVELS == 0:
                found += self._stored.problems(level, rest - 1, node, seq=self.size)
        self._peaks.append(node)
        if self.size in self._sizes:
            self.roots[self.size] = self.root
        return found

    @property
    def root(self) -> bytes:
        """Return the root over the leaves so far."""
        if not self._peaks:
            return hashlib.sha256().digest()
        node = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            node = hashlib.sha256(b"\x01" + peak + node).digest()
        return node


class StoredNodes:
    """The rows of `tree_node`, read for each level in the order of its subtrees; a ledger of format 1 has none."""

    def __init__(self, connection: sqlite3.Connection | None) -> None:
        named = connection and connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'tree_node'").fetchone()
        self._connection = connection if named else None
        self._levels: dict[int, Iterator[tuple[int, bytes]]] = {}

    def problems(self, level: int, place: int, node: bytes, *, seq: int) -> list[AuditProblem]:
        """Compare the next stored row of a level with the derived node."""
        if self._connection is None:
            return []
        if level not in self._levels:
            query = "SELECT place, hash FROM tree_node WHERE level = ? ORDER BY place"
            self._levels[level] = iter(self._connection.execute(query, (level,)))
        stored = next(self._levels[level], None)
        if stored == (place, node):
            return []
        found = "missing" if stored is None else f"place {stored[0]}: {hex_of(stored[1])}"
        return [AuditProblem(seq, f"tree_node level {level}", f"place {place}: {node.hex()}", found)]

    def left_over(self) -> list[AuditProblem]:
        """Return a problem for each level with stored rows of subtrees that no event completes."""
        if self._connection is None:
            return []
        rows = self._connection.execute("SELECT level, max(place), count(*) FROM tree_node GROUP BY level").fetchall()
        (events,) = self._connection.execute("SELECT count(*) FROM event").fetchone()
        return [
            AuditProblem(None, f"tree_node level {level}", f"{events >> level} places", f"{count}, up to {last}")
            for level, last, count in rows
            if count > events >> level or last >= events >> level
        ]
