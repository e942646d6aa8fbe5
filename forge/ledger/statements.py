"""The ledger's statements, as SQLite takes them.

They are written out, not compiled when a process starts: building them from the declarations in `table.py` would cost
every command half a second. A test prepares each of them on a migrated file.
"""

# ruff: noqa: S608 (names of our own and marks are put together, never values)

from collections.abc import Iterable

from forge.ledger.chain import StoredRow

PAYLOAD_LIMIT_BYTES = 16 * 1024
NAMES_AT_ONCE = 100
"""Keys or streams asked for in one query."""
PAGE_ROWS = 500
"""Rows fetched at a time: a reader holds no transaction open between pages."""


def _insert(table: str, columns: Iterable[str]) -> str:
    """The statement that adds one row; it takes the columns in order."""
    names = tuple(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


COLUMNS = ", ".join(StoredRow._fields)
INSERT_EVENT = _insert("event", StoredRow._fields)
"""Takes a `StoredRow` as it is."""
INSERT_META = _insert("ledger_meta", ("one", "ledger_id", "origin", "format", "genesis_hash"))
INSERT_NODE = _insert("tree_node", ("level", "place", "hash"))
INSERT_FOREIGN = _insert("foreign_event", ("ledger_id", *StoredRow._fields))
"""Takes the other ledger's id, and a `StoredRow` of it."""
SELECT_META = "SELECT one, ledger_id, origin, format, genesis_hash FROM ledger_meta"
_AT_THE_HEAD = "seq = (SELECT max(seq) FROM event)"
SELECT_HEAD = f"SELECT seq, event_hash FROM event WHERE {_AT_THE_HEAD}"
SELECT_STREAM_VERSION = "SELECT coalesce(max(stream_version), 0) FROM event WHERE stream = ?"
SELECT_STREAM_VERSIONS = f"""
SELECT stream, max(stream_version) FROM event WHERE stream IN ({", ".join("?" * NAMES_AT_ONCE)}) GROUP BY stream
"""
"""Takes NAMES_AT_ONCE streams: the versions of those that exist."""
SELECT_NEXT = f"""
SELECT seq, event_hash, ({SELECT_STREAM_VERSION}), (SELECT seq FROM event WHERE idempotency_key = ?)
FROM event WHERE {_AT_THE_HEAD}
"""
"""The head, with the version of a stream and the place of a key: all that one more event needs to know."""
SELECT_BY_KEY = "SELECT seq, type, schema_version, payload_sha256, event_hash FROM event WHERE idempotency_key = ?"
SELECT_USED_KEYS = f"SELECT idempotency_key FROM event WHERE idempotency_key IN ({', '.join('?' * NAMES_AT_ONCE)})"
"""Takes NAMES_AT_ONCE keys: those of them under which an event stands."""
SELECT_STREAMS = "SELECT stream FROM event WHERE stream >= ? AND stream < ? AND stream_version = 1 ORDER BY stream"
"""Takes where the names begin and where they end; answered from the index alone."""
SELECT_NEWEST = f"SELECT {COLUMNS} FROM event WHERE seq = (SELECT max(seq) FROM event WHERE type = ?)"
"""Takes a type: the last row of it."""
SELECT_ALL = f"SELECT {COLUMNS} FROM event ORDER BY seq"
SELECT_TAIL = f"SELECT {COLUMNS} FROM event ORDER BY seq DESC LIMIT ?"
SELECT_PLACE = "SELECT event_hash FROM event WHERE seq = ?"
SELECT_LEAVES = "SELECT event_hash FROM event WHERE seq > ? AND seq <= ? ORDER BY seq"
"""Takes how many leaves come before, and the last one's seq."""
SELECT_NODES = "SELECT hash FROM tree_node WHERE level = ? AND place >= ? AND place < ? ORDER BY place"
SELECT_NODE_COUNT = "SELECT coalesce(max(place), -1) + 1 FROM tree_node WHERE level = ?"
SELECT_FOREIGN = f"SELECT {COLUMNS} FROM foreign_event WHERE ledger_id = ? ORDER BY seq"
SELECT_FOREIGN_HEAD = "SELECT seq, event_hash FROM foreign_event WHERE ledger_id = ? ORDER BY seq DESC LIMIT 1"
SELECT_FOREIGN_PLACE = "SELECT event_hash FROM foreign_event WHERE ledger_id = ? AND seq = ?"
SELECT_FOREIGN_OF_TYPE = """
SELECT seq, recorded_at, payload FROM foreign_event WHERE ledger_id = ? AND type = ? ORDER BY seq
"""


def select_page(*, stream: bool, types: int, correlation: bool) -> str:
    """Rows in order, by what is asked for.

    Takes `after < seq <= until`, then the stream, the types and the correlation id where asked for, then how many.
    """
    asked = [
        "seq > ?",
        "seq <= ?",
        *["stream = ?"] * stream,
        *[f"type IN ({', '.join('?' * types)})"] * bool(types),
        *["correlation_id = ?"] * correlation,
    ]
    return f"SELECT {COLUMNS} FROM event WHERE {' AND '.join(asked)} ORDER BY seq LIMIT ?"


def select_lines(types: int) -> str:
    """What a fold needs of each event; payloads of some types alone.

    Takes those types, `after < seq <= until`, and how many rows.
    """
    numbered = ", ".join(f"?{place}" for place in range(1, types + 1)) or "NULL"
    payloads = (f"CASE WHEN type IN ({numbered}) THEN {column} END" for column in ("payload", "payload_sha256"))
    after, until, page = range(types + 1, types + 4)
    return (
        f"SELECT seq, type, schema_version, recorded_at, actor, event_hash, {', '.join(payloads)} "
        f"FROM event WHERE seq > ?{after} AND seq <= ?{until} ORDER BY seq LIMIT ?{page}"
    )
