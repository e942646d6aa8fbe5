"""Derives a ledger again from its raw rows and says where they differ; it doubts the writer.

Nothing here is shared with the code that writes: the standard library reads the rows, hashes them and renders
their envelopes. Stored payload bytes are hashed as they stand; their form is held against the standard library's
own rendering (see `audit_payload`).
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from forge.errors import LedgerCorrupt, WorkspaceNotFound
from forge.ledger.audit_evidence import Evidence
from forge.ledger.audit_file import file_problems, page_problems
from forge.ledger.audit_imported import Imported
from forge.ledger.audit_report import PROBLEM_LIMIT, AuditReport, CheckpointVerdict, Problem
from forge.ledger.audit_rows import Reading
from forge.ledger.audit_signed import GivenCheckpoint
from forge.ledger.read_only import connect_to_read
from forge.proof.note import VerifierKey


def audit(
    path: Path,
    *,
    runs: Path | None = None,
    checkpoint: bytes | None = None,
    key: VerifierKey | None = None,
    full: bool = False,
) -> AuditReport:
    """Check every row, the schema, the file, and, given `runs`, all evidence named.

    `checkpoint` is one that was kept elsewhere, `key` the one that is trusted instead of those the ledger names.
    `full` goes on after the first thousand problems, and hashes stored blobs that no event names too.

    Raises WorkspaceNotFound if there is no file, UsageError if the checkpoint isn't one, EnvironmentUnfit if events
    are in a log that can't be read here. Problems come in the order of the rows, then those of the file as a whole;
    the first is where to begin.
    """
    if not path.is_file():
        raise WorkspaceNotFound(f"no ledger at {str(path)!r}", hint="forge init")
    given = None if checkpoint is None else GivenCheckpoint(checkpoint)
    reading = Reading(evidence := Evidence(runs) if runs is not None else None)
    imported = Imported(runs)
    of_rows, of_file = list[Problem](), list[Problem]()
    try:
        with closing(_connect(path)) as connection:
            of_file += file_problems(connection)
            reading.begin(connection, asked=given.size if given else None)
            if _read_rows(reading, connection, of_rows, full=full):
                of_file += reading.left_over()
                of_file += imported.problems(connection, reading.imports)
            of_file += page_problems(connection)
    except (sqlite3.Error, LedgerCorrupt, UnicodeDecodeError) as error:  # the last: SQLite's message quotes damage
        of_file.append(_unreadable(error))
    if reading.events == 0 and not of_file:
        of_file.append(Problem(None, "events", "LedgerOpened as the first event", "no event"))
    of_file += evidence.unnamed() if full and evidence else []
    verdict = reading.verdict(given, key) if given else None
    return reading.report(
        (*of_rows, *of_file, *_against(verdict), *reading.key_problems(key)), verdict, imported=imported.events
    )


def _read_rows(reading: Reading, connection: sqlite3.Connection, problems: list[Problem], *, full: bool) -> bool:
    """Add the rows' problems, which stay where the file ends reading; whether all rows were read."""
    for found in reading.rows(connection):
        problems += found
        if len(problems) >= PROBLEM_LIMIT and not full:
            return False
    return True


def _unreadable(error: Exception) -> Problem:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_ROLLBACK:
        undo = "a crash left a journal beside it, which only a writer may play back: forge ledger recover"
        return Problem(None, "database", "a ledger at rest", undo)
    return Problem(None, "database", "a readable ledger", str(error))


def _connect(path: Path) -> sqlite3.Connection:
    """Read-only, text as bytes, and one view of the file from here on."""
    connection = connect_to_read(path, timeout_s=30)
    connection.text_factory = bytes
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("BEGIN")
    return connection


def _against(verdict: CheckpointVerdict | None) -> list[Problem]:
    if verdict is None or verdict.verdict == "consistent":
        return []
    expected = f"{verdict.size} events of {verdict.origin} with root {verdict.root}"
    return [Problem(None, "checkpoint", expected, verdict.verdict)]
