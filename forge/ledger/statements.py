"""Holds the ledger's SQL statements.

They are written out here. Building them from the declarations in `table.py` would cost every command half a second. A
test prepares each of them on a migrated file.
"""

# ruff: noqa: S608 (only names of our own and placeholders are joined, never values)

from collections.abc import Iterable

from forge.ledger.chain import StoredRow

PAYLOAD_LIMIT_BYTES = 16 * 1024
"""Largest payload in bytes. Larger data belongs into the blob store."""
NAMES_AT_ONCE = 100
"""Number of keys or streams in one query, far fewer than the 32,766 parameters that SQLite takes."""
PAGE_ROWS = 500
"""Number of rows fetched at a time; a reader holds no transaction open between pages. Chosen; 500 of the largest
payloads take 8 MiB."""


def _insert(table: str, columns: Iterable[str]) -> str:
    """Return the statement that adds one row; it takes the columns in order."""
    names = tuple(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


COLUMNS = ", ".join(StoredRow._fields)
"""Columns of `event`, in their order."""
INSERT_EVENT = _insert("event", StoredRow._fields)
"""Statement that adds one event. Takes a `StoredRow`."""
INSERT_META = _insert("ledger_meta", ("one", "ledger_id", "origin", "format", "genesis_hash"))
INSERT_NODE = _insert("tree_node", ("level", "place", "hash"))
INSERT_FOREIGN = _insert("foreign_event", ("ledger_id", *StoredRow._fields))
"""Statement that adds one event of another ledger. Takes that ledger's id and a `StoredRow`."""
SELECT_META = "SELECT one, ledger_id, origin, format, genesis_hash FROM ledger_meta"
_AT_THE_HEAD = "seq = (SELECT max(seq) FROM event)"
SELECT_HEAD = f"SELECT seq, event_hash FROM event WHERE {_AT_THE_HEAD}"
SELECT_STREAM_VERSION = "SELECT coalesce(max(stream_version), 0) FROM event WHERE stream = ?"
"""Query for the number of events in a stream."""
SELECT_STREAM_VERSIONS = f"""
SELECT stream, max(stream_version) FROM event WHERE stream IN ({", ".join("?" * NAMES_AT_ONCE)}) GROUP BY stream
"""
"""Query for the versions of the streams that exist. Takes NAMES_AT_ONCE streams."""
SELECT_NEXT = f"""
SELECT seq, event_hash, recorded_at, ({SELECT_STREAM_VERSION}), (SELECT seq FROM event WHERE idempotency_key = ?)
FROM event WHERE {_AT_THE_HEAD}
"""
"""Query for all that one more event needs: the head and its time, a stream's version, and the place of a key."""
SELECT_BY_KEY = "SELECT seq, type, schema_version, payload_sha256, event_hash FROM event WHERE idempotency_key = ?"
SELECT_USED_KEYS = f"SELECT idempotency_key FROM event WHERE idempotency_key IN ({', '.join('?' * NAMES_AT_ONCE)})"
"""Query for the keys that an event has already used. Takes NAMES_AT_ONCE keys."""
LAST_CHARACTER = "\U0010ffff"
"""Character that sorts after every printable one. Texts that begin with t lie between t and t followed by it."""
SELECT_STREAMS = "SELECT stream FROM event WHERE stream >= ? AND stream < ? AND stream_version = 1 ORDER BY stream"
"""Query for the streams between two names, answered from the index alone. Takes both names."""
SELECT_NEWEST = f"SELECT {COLUMNS} FROM event WHERE type = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
"""Query for the last row of a type, or one before it. Takes the type and the number of later rows of it."""
SELECT_ALL = f"SELECT {COLUMNS} FROM event ORDER BY seq"
SELECT_TAIL = f"SELECT {COLUMNS} FROM event ORDER BY seq DESC LIMIT ?"
SELECT_PLACE = "SELECT event_hash FROM event WHERE seq = ?"
SELECT_LEAVES = "SELECT event_hash FROM event WHERE seq > ? AND seq <= ? ORDER BY seq"
"""Query for the hashes of leaves. Its values are the number of leaves before, and the last one's `seq`."""
SELECT_NODES = "SELECT hash FROM tree_node WHERE level = ? AND place >= ? AND place < ? ORDER BY place"
"""Query for the hashes of a level of the tree. Its values are the level, the first place and the place after the
last."""
SELECT_NODE_COUNT = "SELECT coalesce(max(place), -1) + 1 FROM tree_node WHERE level = ?"
SELECT_FOREIGN = f"SELECT {COLUMNS} FROM foreign_event WHERE ledger_id = ? ORDER BY seq"
SELECT_FOREIGN_HEAD = "SELECT seq, event_hash FROM foreign_event WHERE ledger_id = ? ORDER BY seq DESC LIMIT 1"
SELECT_FOREIGN_PLACE = "SELECT event_hash FROM foreign_event WHERE ledger_id = ? AND seq = ?"
SELECT_FOREIGN_OF_TYPE = """
SELECT seq, recorded_at, payload FROM foreign_event WHERE ledger_id = ? AND type = ? ORDER BY seq
"""


def select_page(*, stream: bool, types: int, correlation: bool) -> str:
    """Return the query for rows in order, with the chosen filters.

    It takes `after < seq <= until`, then the stream, the types and the correlation id if chosen, then the number of
    rows. A stream and what belongs together are few events: their own indexes are used, and with `+` not the types'.
    """
    kept_from_the_index = "+" * (stream or correlation)
    asked = [
        "seq > ?",
        "seq <= ?",
        *["stream = ?"] * stream,
        *[f"{kept_from_the_index}type IN ({', '.join('?' * types)})"] * bool(types),
        *["correlation_id = ?"] * correlation,
    ]
    return f"SELECT {COLUMNS} FROM event WHERE {' AND '.join(asked)} ORDER BY seq LIMIT ?"


def select_lines(types: int) -> str:
    """Return the query for the columns that a fold needs, with the payloads of some types only.

    It takes those types twice, `after < seq <= until`, and the number of rows.
    """
    wanted = ", ".join("?" * types) or "NULL"
    payloads = (f"CASE WHEN type IN ({wanted}) THEN {column} END" for column in ("payload", "payload_sha256"))
    return (
        f"SELECT seq, type, schema_version, recorded_at, actor, event_hash, {', '.join(payloads)} "
        "FROM event WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    )
