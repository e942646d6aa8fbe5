"""Derives a ledger again from its raw rows and says where they differ; it doubts the writer.

Nothing here is shared with the code that writes: the standard library reads the rows, hashes them and renders
their envelopes. Stored payload bytes are hashed as they stand; their form is held against the standard library's
own rendering (see `audit_payload`).
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from forge.errors import LedgerCorrupt, UsageError, WorkspaceNotFound
from forge.ledger.audit.evidence import Evidence
from forge.ledger.audit.file import file_problems, page_problems
from forge.ledger.audit.imported import Imported
from forge.ledger.audit.numbers import number_problems
from forge.ledger.audit.published import Published
from forge.ledger.audit.read_only import connect_to_read
from forge.ledger.audit.report import PROBLEM_LIMIT, AuditReport, CheckpointVerdict, Kept, Problem, Vouching
from forge.ledger.audit.rows import Reading
from forge.ledger.audit.signatures import DECISIVE, GivenCheckpoint
from forge.proof.note import VerifierKey


def audit(
    path: Path,
    *,
    runs: Path | None = None,
    checkpoint: bytes | None = None,
    key: VerifierKey | None = None,
    full: bool = False,
    kept: Sequence[Kept] = (),
) -> AuditReport:
    """Check every row, the schema, the file, and, given `runs`, all evidence named.

    `checkpoint` is one that was kept elsewhere, `key` the one that is trusted instead of those the ledger names.
    `kept` are checkpoints that lie beside the ledger: they were read before this call, so the ledger reaches them.
    `full` goes on after the first thousand problems, hashes stored blobs that no event names too, works every number
    out again from its samples, and holds what is published beside the ledger against its events.

    Raises WorkspaceNotFound if there is no file, UsageError if the checkpoint isn't one, EnvironmentUnfit if events
    are in a log that can't be read here. Problems come in the order of the rows, then those of the file.
    """
    if not path.is_file():
        raise WorkspaceNotFound(f"no ledger at {str(path)!r}", hint="forge init")
    given = None if checkpoint is None else GivenCheckpoint(checkpoint)
    notes, unparsed = _parsed(kept)
    imported, reading = Imported(runs), Reading(evidence := Evidence(runs) if runs is not None else None)
    published = Published.beside(path) if full and runs is not None else None  # read first: it is behind the ledger
    of_rows, of_file, whole, decided = list[Problem](), list[Problem](), False, 0
    try:
        with closing(_connect(path)) as connection:
            of_file += file_problems(connection)
            reading.begin(connection, asked={note.size for note in (given, *notes.values()) if note is not None})
            if whole := _read_rows(reading, connection, of_rows, full=full):
                of_file += [*reading.left_over(), *imported.problems(connection, reading.imports)]
                of_file += _figures(connection, runs, published) if published else []
            decided = _last_decision(connection)
            of_file += page_problems(connection)
    except (sqlite3.Error, LedgerCorrupt, UnicodeDecodeError) as error:  # the last: SQLite's message quotes damage
        of_file.append(_unreadable(error))
    of_file += _none_read(reading) if not of_file else []
    of_file += evidence.unnamed() if full and evidence else []
    verdict, vouching, of_notes = _held_against(reading, given, notes, key, whole=whole, decided=decided)
    return reading.report(
        (*of_rows, *of_file, *unparsed, *of_notes), verdict, imported=imported.events, vouching=vouching
    )


def _none_read(reading: Reading) -> list[Problem]:
    if reading.events:
        return []
    return [Problem(None, "events", "LedgerOpened as the first event", "no event")]


def _held_against(
    reading: Reading,
    given: GivenCheckpoint | None,
    notes: Mapping[Kept, GivenCheckpoint],
    key: VerifierKey | None,
    *,
    whole: bool,
    decided: int,
) -> tuple[CheckpointVerdict | None, Vouching | None, list[Problem]]:
    """What the given checkpoint, those beside the ledger and the trusted key say of what was read."""
    verdict = reading.verdict(given, key, whole=whole) if given else None
    sound, problems = _judged(reading, notes, whole=whole)
    sound += [given] if given and verdict and verdict.verdict == "consistent" else []
    vouching = None if key is None else _vouching(reading, key, sound, decided)
    problems += _against("checkpoint", verdict) if verdict else []
    return verdict, vouching, [*problems, *_key_problems(reading, key, vouching)]


def _judged(
    reading: Reading, notes: Mapping[Kept, GivenCheckpoint], *, whole: bool
) -> tuple[list[GivenCheckpoint], list[Problem]]:
    """Of the checkpoints beside the ledger, those that it is consistent with, and what contradicts the others."""
    sound, problems = list[GivenCheckpoint](), list[Problem]()
    for one, note in notes.items():
        found = reading.verdict(note, None, whole=whole)
        sound += [note] if found.verdict == "consistent" else []
        problems += _against(one.where, found) if one.of_this or found.verdict != "other_ledger" else []
    return sound, problems


def _parsed(kept: Sequence[Kept]) -> tuple[dict[Kept, GivenCheckpoint], list[Problem]]:
    """What lies beside the ledger, and what of it is no checkpoint."""
    found, problems = dict[Kept, GivenCheckpoint](), list[Problem]()
    for one in kept:
        try:
            found[one] = GivenCheckpoint(one.note)
        except UsageError as error:
            problems.append(Problem(None, one.where, "a signed checkpoint", error.message))
    return found, problems


def _vouching(reading: Reading, key: VerifierKey, sound: Iterable[GivenCheckpoint], decided: int) -> Vouching:
    """What the key stands for; `decided` is the last event for which a checkpoint should have been issued."""
    signatures = reading.signatures
    vouched_for = min(signatures.vouched_for(key, also=sound), reading.events)
    beyond = max(signatures.signed, decided) > vouched_for
    return Vouching(
        str(key), "unvouched" if beyond or not vouched_for else "vouched", vouched_for, reading.events - vouched_for
    )


def _key_problems(reading: Reading, key: VerifierKey | None, vouching: Vouching | None) -> list[Problem]:
    """Whether the ledger names the key that is trusted, and whether that key vouches for what was signed."""
    if key is None or vouching is None:
        return []
    keys = reading.signatures.keys
    if key not in keys:
        return [Problem(None, "key", str(key), ", ".join(map(str, keys)) or "none")]
    if vouching.verdict == "vouched":
        return []
    expected = f"checkpoints by {key}, or by a key that it names, over every decision"
    return [Problem(None, "vouched for", expected, f"{vouching.vouched_for} of {reading.events} events")]


def _last_decision(connection: sqlite3.Connection) -> int:
    query = f"SELECT max(seq) FROM event WHERE type IN ({DECISIVE})"  # noqa: S608
    (last,) = connection.execute(query).fetchone()
    return last if isinstance(last, int) else 0


def _figures(connection: sqlite3.Connection, runs: Path | None, published: Published) -> list[Problem]:
    """Numbers that aren't what their samples give, and published ones that aren't what the events say."""
    return (number_problems(connection, runs) if runs is not None else []) + published.problems(connection)


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


def _against(where: str, verdict: CheckpointVerdict) -> list[Problem]:
    if verdict.verdict == "consistent":
        return []
    expected = f"{verdict.size} events of {verdict.origin} with root {verdict.root}"
    return [Problem(None, where, expected, verdict.verdict)]
