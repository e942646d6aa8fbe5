"""Checks a ledger before it is used: identity, schema, the row about itself, and the end of its chain.

`audit` checks the whole chain. This module checks only the last rows, on which the next append builds.
"""

import sqlite3
from pathlib import Path

from forge.errors import LedgerCorrupt
from forge.ledger.chain import FORMAT, StoredRow, event_hash, genesis_hash
from forge.ledger.connection import configure, connect
from forge.ledger.lock import WriterLock
from forge.ledger.schema import USER_VERSION, check_identity, check_schema, migrate
from forge.ledger.statements import SELECT_HEAD, SELECT_META, SELECT_TAIL
from forge.ledger.tree import grow

TAIL_ROWS = 100
"""Number of rows at the end whose hashes are derived again at each open. Chosen; each open takes their time. `forge
ledger verify` derives all."""


def open_checked(path: Path, *, lock: WriterLock | None) -> tuple[sqlite3.Connection, str]:
    """Connect to an existing ledger, for writing if there is a `lock`; return the connection and the ledger's id.

    A ledger of an older format is brought up to date if it is opened for writing. For reading it is refused. Raises
    LedgerCorrupt.
    """
    connection, ledger_id, version = _checked(path, read_only=lock is None)
    if version == USER_VERSION:
        return connection, ledger_id
    connection.close()
    if lock is None:
        raise LedgerCorrupt(
            f"{path}: ledger format {version}, expected {USER_VERSION}: open it once for writing, "
            "which brings it up to date",
            hint="forge run list",
        )
    _bring_up_to_date(path, lock)
    connection, ledger_id, _ = _checked(path, read_only=False)
    return connection, ledger_id


def _checked(path: Path, *, read_only: bool) -> tuple[sqlite3.Connection, str, int]:
    connection = connect(path, read_only=read_only)
    try:
        version = check_identity(connection, path)
        configure(connection, path, read_only=read_only)
        ledger_id = _check_content(connection, path, version=version)
    except BaseException:
        connection.close()
        raise
    return connection, ledger_id, version


def _check_content(connection: sqlite3.Connection, path: Path, *, version: int) -> str:
    check_schema(connection, path, version=version)
    ledger_id = check_meta(connection, path)
    check_tail(connection, path, genesis_hash(ledger_id))
    return ledger_id


def check_connected(connection: sqlite3.Connection, path: Path) -> str:
    """Check a ledger of the current format on a connection of the caller's; return its id, or raise LedgerCorrupt."""
    version = check_identity(connection, path)
    if version != USER_VERSION:
        raise LedgerCorrupt(
            f"{path}: ledger format {version}, expected {USER_VERSION}: open the ledger once", hint="forge run list"
        )
    return _check_content(connection, path, version=version)


def _bring_up_to_date(path: Path, lock: WriterLock) -> None:
    """Run the missing migrations in one transaction; another process may have run them first."""
    with lock.held():
        connection, _, version = _checked(path, read_only=False)
        connection.close()
        if version != USER_VERSION:
            migrate(path, then=_fill_tree)


def _fill_tree(connection: sqlite3.Connection) -> None:
    row = connection.execute(SELECT_HEAD).fetchone()
    grow(connection, row[0])


def check_meta(connection: sqlite3.Connection, path: Path) -> str:
    """Return the ledger's id, from the one row of `ledger_meta`.

    Raises LedgerCorrupt unless it has one row, with the genesis hash of its own id.
    """
    rows = connection.execute(SELECT_META).fetchall()
    if len(rows) != 1:
        raise LedgerCorrupt(f"{path}: ledger_meta has {len(rows)} rows, expected 1: restore a backup")
    _, ledger_id, _, format_name, genesis = rows[0]
    if format_name != FORMAT or genesis != genesis_hash(ledger_id):
        raise LedgerCorrupt(
            f"{path}: ledger_meta of {ledger_id!r} ({format_name!r}) doesn't give its own genesis hash: "
            "restore a backup"
        )
    return str(ledger_id)


def check_tail(connection: sqlite3.Connection, path: Path, genesis: bytes) -> None:
    """Derive the hashes of the last rows again; raise LedgerCorrupt that names the first difference."""
    found = connection.execute(SELECT_TAIL, (TAIL_ROWS + 1,)).fetchall()
    rows = [StoredRow._make(row) for row in reversed(found)]
    if not rows:
        raise LedgerCorrupt(f"{path}: the ledger has no first event: restore a backup")
    before = StoredRow._make(rows[0])
    if len(rows) <= TAIL_ROWS:
        _require_link(path, before, 1, genesis)
    for row in rows[1:]:
        _require_link(path, row, before.seq + 1, before.event_hash)
        before = row


def _require_link(path: Path, row: StoredRow, seq: int, prev_hash: bytes) -> None:
    try:
        derived = event_hash(row)
    except (TypeError, AttributeError):  # a damaged page holds a value of another type: no hash can be right
        derived = b""
    if row.seq != seq or row.prev_hash != prev_hash or row.event_hash != derived:
        raise LedgerCorrupt(
            f"{path}: event {row.seq} doesn't follow from the one before it (expected event {seq} with the "
            "hash of its own content): history was edited or damaged",
            hint="forge ledger verify",
        )
