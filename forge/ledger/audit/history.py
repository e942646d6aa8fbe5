"""Derives a ledger again from its raw rows and reports each difference.

No code of the writer is used. The standard library reads the rows, hashes them and renders their envelopes. Stored
payload bytes are hashed as they are; `payload` compares their form with the standard library's own rendering.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from forge.errors import LedgerCorrupt, UsageError, WorkspaceNotFound
from forge.ledger.audit.each_ledger import imported_ledgers, problem_of, rows_of
from forge.ledger.audit.evidence import EvidenceCheck
from forge.ledger.audit.file import file_problems, page_problems
from forge.ledger.audit.imported import ForeignLedgers
from forge.ledger.audit.models import TYPES as MODEL_TYPES
from forge.ledger.audit.models import ModelNumbers
from forge.ledger.audit.numbers import TYPES as NUMERIC_TYPES
from forge.ledger.audit.numbers import Numbers
from forge.ledger.audit.published import Published
from forge.ledger.audit.read_only import connect_to_read
from forge.ledger.audit.report import (
    PROBLEM_LIMIT,
    AuditProblem,
    AuditReport,
    CheckpointVerdict,
    KeptCheckpoint,
    Vouching,
)
from forge.ledger.audit.reports import TYPES as REPORT_TYPES
from forge.ledger.audit.reports import report_problems
from forge.ledger.audit.rows import Reading
from forge.ledger.audit.sealed_files import TYPES as FILE_TYPES
from forge.ledger.audit.sealed_files import sealed_file_problems
from forge.ledger.audit.session_spreads import TYPES as SPREAD_TYPES
from forge.ledger.audit.session_spreads import spread_problems
from forge.ledger.audit.signatures import DECISIVE, GivenCheckpoint
from forge.proof.note import VerifierKey


def audit(
    path: Path,
    *,
    runs: Path | None = None,
    checkpoint: bytes | None = None,
    key: VerifierKey | None = None,
    full: bool = False,
    kept: Sequence[KeptCheckpoint] = (),
) -> AuditReport:
    """Check every row, the schema, the file and, if `runs` is given, all stored evidence that events name.

    `checkpoint` is a checkpoint that was kept elsewhere. `key` is the key to trust, instead of those that the ledger
    names. `kept` are the checkpoints beside the ledger. They were read before this call, so the ledger must reach
    them.
    With `full`, the audit doesn't stop after the first thousand problems. It hashes stored blobs that no event names,
    computes every number again from its samples, and compares the published files with the events.

    Raises WorkspaceNotFound if there is no file, and UsageError if the checkpoint can't be parsed. Raises
    EnvironmentUnfit if events are in a log that can't be read here. The problems of the rows come first, in their
    order, then those of the file.
    """
    if not path.is_file():
        raise WorkspaceNotFound(
            f"no ledger at {str(path)!r}: expected a workspace", hint="forge ledger verify --home WORKSPACE"
        )
    given = None if checkpoint is None else GivenCheckpoint(checkpoint)
    notes, unparsed = _parse_kept(kept)
    imported, reading = ForeignLedgers(runs), Reading(evidence := EvidenceCheck(runs) if runs is not None else None)
    published = (
        Published.beside(path) if full and runs is not None else None
    )  # read before the ledger: it may then only be behind it
    row_problems, file_found, whole, decided = list[AuditProblem](), list[AuditProblem](), False, 0
    try:
        with closing(_connect(path)) as connection:
            file_found += file_problems(connection)
            reading.begin(connection, asked={note.size for note in (given, *notes.values()) if note is not None})
            if whole := _read_rows(reading, connection, row_problems, full=full):
                file_found += [*reading.left_over(), *imported.problems(connection, reading.imports)]
                if published and runs is not None:
                    file_found += [*_content_problems(connection, runs), *published.problems(connection)]
            decided = _last_decision(connection)
            file_found += page_problems(connection)
    except (sqlite3.Error, LedgerCorrupt, UnicodeDecodeError) as error:  # the last: SQLite's message quotes damage
        file_found.append(_unreadable(error))
    file_found += _empty_ledger_problem(reading) if not file_found else []
    file_found += evidence.unnamed() if full and evidence else []
    verdict, vouching, checkpoint_problems = _compare_with_checkpoints(
        reading, given, notes, key, whole=whole, decided=decided
    )
    return reading.report(
        (*row_problems, *file_found, *unparsed, *checkpoint_problems),
        verdict,
        imported=imported.events,
        vouching=vouching,
    )


def _empty_ledger_problem(reading: Reading) -> list[AuditProblem]:
    if reading.events:
        return []
    return [AuditProblem(None, "events", "LedgerOpened as the first event", "no event")]


def _compare_with_checkpoints(
    reading: Reading,
    given: GivenCheckpoint | None,
    notes: Mapping[KeptCheckpoint, GivenCheckpoint],
    key: VerifierKey | None,
    *,
    whole: bool,
    decided: int,
) -> tuple[CheckpointVerdict | None, Vouching | None, list[AuditProblem]]:
    """Compare the ledger that was read with the given checkpoint, the checkpoints beside it and the trusted key."""
    verdict = reading.verdict(given, key, whole=whole) if given else None
    sound, problems = _compare_kept(reading, notes, whole=whole)
    sound += [given] if given and verdict and verdict.verdict == "consistent" else []
    vouching = None if key is None else _vouching(reading, key, sound, decided)
    problems += _contradiction("checkpoint", verdict) if verdict else []
    return verdict, vouching, [*problems, *_key_problems(reading, key, vouching)]


def _compare_kept(
    reading: Reading, notes: Mapping[KeptCheckpoint, GivenCheckpoint], *, whole: bool
) -> tuple[list[GivenCheckpoint], list[AuditProblem]]:
    """Return the checkpoints beside the ledger that it is consistent with, and a problem for each other one."""
    sound, problems = list[GivenCheckpoint](), list[AuditProblem]()
    for one, note in notes.items():
        found = reading.verdict(note, None, whole=whole)
        sound += [note] if found.verdict == "consistent" else []
        problems += _contradiction(one.where, found) if one.of_this or found.verdict != "other_ledger" else []
    return sound, problems


def _parse_kept(kept: Sequence[KeptCheckpoint]) -> tuple[dict[KeptCheckpoint, GivenCheckpoint], list[AuditProblem]]:
    """Parse the checkpoints beside the ledger; a problem for each that can't be parsed."""
    found, problems = dict[KeptCheckpoint, GivenCheckpoint](), list[AuditProblem]()
    for one in kept:
        try:
            found[one] = GivenCheckpoint(one.note)
        except UsageError as error:
            problems.append(AuditProblem(None, one.where, "a signed checkpoint", error.message))
    return found, problems


def _vouching(reading: Reading, key: VerifierKey, sound: Iterable[GivenCheckpoint], decided: int) -> Vouching:
    """Return how many events the key vouches for; `decided` is the last event that must be under a checkpoint."""
    signatures = reading.signatures
    vouched_for = min(signatures.vouched_for(key, also=sound), reading.events)
    beyond = max(signatures.signed, decided) > vouched_for
    return Vouching(
        str(key), "unvouched" if beyond or not vouched_for else "vouched", vouched_for, reading.events - vouched_for
    )


def _key_problems(reading: Reading, key: VerifierKey | None, vouching: Vouching | None) -> list[AuditProblem]:
    """Return a problem if the ledger doesn't name the trusted key, or if that key doesn't vouch for all decisions."""
    if key is None or vouching is None:
        return []
    keys = reading.signatures.keys
    if key not in keys:
        return [AuditProblem(None, "key", str(key), ", ".join(map(str, keys)) or "none")]
    if vouching.verdict == "vouched":
        return []
    expected = f"checkpoints by {key}, or by a key that it names, over every decision"
    return [AuditProblem(None, "vouched for", expected, f"{vouching.vouched_for} of {reading.events} events")]


def _last_decision(connection: sqlite3.Connection) -> int:
    query = f"SELECT max(seq) FROM event WHERE type IN ({DECISIVE})"  # noqa: S608
    (last,) = connection.execute(query).fetchone()
    return last if isinstance(last, int) else 0


def _content_problems(connection: sqlite3.Connection, runs: Path) -> Iterator[AuditProblem]:
    """Yield what events of this ledger, and of imported ones, say that the bytes they name don't."""
    yield from sealed_file_problems(rows_of(connection, None, FILE_TYPES), runs)
    for ledger_id in (None, *imported_ledgers(connection)):
        of_runs = Numbers(runs, run_folders=ledger_id is None).problems(rows_of(connection, ledger_id, NUMERIC_TYPES))
        of_models = ModelNumbers(runs).problems(rows_of(connection, ledger_id, MODEL_TYPES))
        of_reports = report_problems(rows_of(connection, ledger_id, REPORT_TYPES), runs)
        of_spreads = spread_problems(rows_of(connection, ledger_id, SPREAD_TYPES), runs)
        for one in (*of_runs, *of_models, *of_reports, *of_spreads):
            yield one if ledger_id is None else problem_of(ledger_id, one)


def _read_rows(reading: Reading, connection: sqlite3.Connection, problems: list[AuditProblem], *, full: bool) -> bool:
    """Append the rows' problems to `problems`, which keeps them if reading fails; return whether all were read."""
    for found in reading.rows(connection):
        problems += found
        if len(problems) >= PROBLEM_LIMIT and not full:
            return False
    return True


def _unreadable(error: Exception) -> AuditProblem:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_ROLLBACK:
        undo = "a crash left a journal beside it, which only a writer may play back: forge ledger recover"
        return AuditProblem(None, "database", "a ledger at rest", undo)
    return AuditProblem(None, "database", "a readable ledger", str(error))


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file read-only, with text as bytes, in one transaction that sees one state of the file."""
    connection = connect_to_read(path, timeout_s=30)
    connection.text_factory = bytes
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("BEGIN")
    return connection


def _contradiction(where: str, verdict: CheckpointVerdict) -> list[AuditProblem]:
    if verdict.verdict == "consistent":
        return []
    expected = f"{verdict.size} events of {verdict.origin} with root {verdict.root}"
    return [AuditProblem(None, where, expected, verdict.verdict)]
