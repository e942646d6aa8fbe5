"""The audit's own tree, held against the definition: RFC 6962, section 2.1."""

import hashlib
import sqlite3
from contextlib import closing

import pytest

from forge.ledger.audit.tree import Frontier, StoredNodes

LEAVES = [hashlib.sha256(b"%d" % number).digest() for number in range(600)]
SIZES = (*range(1, 70), 255, 256, 257, 272, 273, 511, 512, 513, 600)


def defined(leaves: list[bytes]) -> bytes:
    """The root as the definition has it: split at the largest power of two below the size."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return hashlib.sha256(b"\x01" + defined(leaves[:half]) + defined(leaves[half:])).digest()


def test_the_root_at_every_size_is_the_defined_one() -> None:
    frontier = Frontier(StoredNodes(None), SIZES)
    assert frontier.root == hashlib.sha256().digest()
    for leaf in LEAVES:
        assert frontier.add(leaf) == []
    assert frontier.roots == {size: defined(LEAVES[:size]) for size in SIZES}
    assert frontier.root == defined(LEAVES)


@pytest.mark.parametrize(
    ("sql", "seq", "level"),
    [
        ("SELECT 1", None, None),
        ("UPDATE tree_node SET hash = zeroblob(32) WHERE level = 4 AND place = 2", 48, 4),
        ("UPDATE tree_node SET hash = zeroblob(32) WHERE level = 8 AND place = 1", 512, 8),
        ("DELETE FROM tree_node WHERE level = 4 AND place = 36", 592, 4),
        ("DELETE FROM tree_node WHERE level = 8", 256, 8),
    ],
)
def test_a_stored_node_that_is_not_the_derived_one_is_named_where_it_is_complete(
    sql: str, seq: int | None, level: int | None
) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE tree_node (level, place, hash)")
        for height in (4, 8):
            for place in range(len(LEAVES) >> height):
                node = defined(LEAVES[place << height : place + 1 << height])
                connection.execute("INSERT INTO tree_node VALUES (?, ?, ?)", (height, place, node))
        connection.execute(sql)
        frontier = Frontier(StoredNodes(connection), ())
        found = [problem for leaf in LEAVES for problem in frontier.add(leaf)]
    first = (found[0].seq, found[0].what) if found else None
    assert first == (None if seq is None else (seq, f"tree_node level {level}"))
