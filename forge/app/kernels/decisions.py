"""Records what a person withdraws: a kernel, or a benchmark that kernels rest on. Nothing is removed.

A decision is made on the current state of a stream, and appended only if the stream hasn't changed since. Then it is
signed and published. When the command has ended, no lookup of the published registry answers with what was withdrawn.
If it can't be published, for example on a full disk, the registry's pointer is removed: no answer is better than a
wrong one.
"""

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import get_args

from forge.app.known_kernel import require_kernel
from forge.app.user.given_reason import require_reason
from forge.app.workspace import Workspace
from forge.domain.digest import sha256
from forge.errors import AlreadyDecided, ForgeError, IntegrityError, StorageFailed, UnknownName, UsageError
from forge.events import (
    BenchmarkInvalidated,
    BenchmarkRecorded,
    Event,
    KernelDeprecated,
    KernelRevoked,
    ReplicationRecorded,
)
from forge.events.promote import Severity
from forge.projections.publish import REBUILD_COMMAND
from forge.projections.snapshot import POINTER

Data = dict[str, object]
Decision = BenchmarkInvalidated | KernelDeprecated | KernelRevoked
REASON_LIMIT = 1000
"""Longest reason, in characters. Chosen; a longer reason belongs in a file of evidence, which may have 64 MiB."""
EVIDENCE_LIMIT = 32
"""Number of pieces of evidence for one decision, at most. Chosen; their digests are part of the event, which holds 16
KiB."""
NOT_RECORDED: Data = {"recorded": False}
"""Beginning of the answer to a dry run, where a decision has the number of its event."""
NUMBER_DIGITS = 20
"""Length of a number of digits above which it can't be the number of an event."""
EVIDENCE_BYTES = 64 * 1024 * 1024
"""Largest file of evidence, in bytes. Chosen; the file is stored for ever beside the ledger, and each backup copies
it."""
KERNEL = """
    SELECT family, op, gpu, dtype, status, status_seq, superseded_by, revoked_seq FROM kernels WHERE kernel_id = ?
"""
"""Query for the row of the kernel that is decided about."""
STOOD_ON = "SELECT kernel_id, status FROM kernels WHERE benchmark_seq = ? ORDER BY kernel_id"
"""Query for the kernels that rest on one benchmark."""
WITHDRAWN = "SELECT seq, why FROM invalidations WHERE benchmark_seq = ?"
"""Query for the event that withdrew a benchmark, and why."""


def revoke(
    workspace: Workspace,
    kernel_id: str,
    *,
    reason: str,
    severity: str,
    evidence: tuple[str, ...] = (),
    dry_run: bool = False,
) -> Data:
    """Revoke a kernel for good, or only ask whether that is possible; raise AlreadyDecided if it was revoked.

    Raises UnknownName for an unknown kernel or severity.
    """
    require_reason(reason, longest=REASON_LIMIT)
    known: dict[str, Severity] = {name: name for name in get_args(Severity)}
    if severity not in known:
        raise UnknownName("severity", severity, list(known))
    row, version = _kernel(workspace, kernel_id)
    event = KernelRevoked(
        kernel_id=kernel_id,
        family=str(row["family"]),
        reason=reason,
        severity=known[severity],
        evidence=_evidence(workspace, evidence, keep=not dry_run),
    )
    recorded = _repeated(workspace, event, row["revoked_seq"])
    if recorded is None:
        _require_not_revoked(row, kernel_id)
        recorded = NOT_RECORDED if dry_run else record_decision(workspace, event, expected=version)
    return recorded | {"kernel_id": kernel_id, "status": "revoked"}


def deprecate(
    workspace: Workspace, kernel_id: str, *, reason: str, superseded_by: str | None, dry_run: bool = False
) -> Data:
    """Deprecate a kernel, or only ask whether that is possible; raise AlreadyDecided if that adds nothing."""
    require_reason(reason, longest=REASON_LIMIT)
    row, version = _kernel(workspace, kernel_id)
    _require_not_revoked(row, kernel_id)
    event = KernelDeprecated(
        kernel_id=kernel_id, family=str(row["family"]), reason=reason, superseded_by=superseded_by
    )
    answer = {"kernel_id": kernel_id, "status": "deprecated", "superseded_by": superseded_by}
    recorded = _repeated(workspace, event, row["status_seq"])
    if recorded is not None:
        return recorded | answer
    if row["status"] == "deprecated" and superseded_by in (None, row["superseded_by"]):
        raise AlreadyDecided(
            f"kernel {kernel_id!r} is deprecated already (event {row['status_seq']}): nothing was recorded",
            hint=f"forge kernel history {kernel_id}",
        )
    if superseded_by is not None:
        _require_successor(workspace, row, kernel_id, superseded_by)
    return (NOT_RECORDED if dry_run else record_decision(workspace, event, expected=version)) | answer


def invalidate(workspace: Workspace, benchmark_seq: int, *, reason: str, dry_run: bool = False) -> Data:
    """Withdraw a recorded benchmark, unless it is a dry run, and return the kernels that rest on it.

    Raises AlreadyDecided if it is withdrawn for another reason.
    """
    require_reason(reason, longest=REASON_LIMIT)
    event = _benchmark(workspace, benchmark_seq)
    stream = event.stream()
    version = workspace.ledger.stream_version(stream)
    with _caught_up(workspace) as connection:
        withdrawn = connection.execute(WITHDRAWN, (benchmark_seq,)).fetchone()
    decided = BenchmarkInvalidated(
        candidate=event.candidate, benchmark_seq=benchmark_seq, why=reason, by=workspace.actor
    )
    answer = _repeated(workspace, decided, withdrawn[0]) if withdrawn is not None else None
    if withdrawn is not None and answer is None:
        raise AlreadyDecided(
            f"benchmark {benchmark_seq} was invalidated already (event {withdrawn[0]}: {withdrawn[1]}): "
            "nothing was recorded",
            hint=f"forge ledger log --after {withdrawn[0] - 1} --limit 1",
        )
    answer = answer or (NOT_RECORDED if dry_run else record_decision(workspace, decided, expected=version))
    with _caught_up(workspace) as connection:
        stood = [
            {"kernel_id": name, "status": status} for name, status in connection.execute(STOOD_ON, (benchmark_seq,))
        ]
    return answer | {"benchmark_seq": benchmark_seq, "candidate": event.candidate, "kernels": stood}


def _kernel(workspace: Workspace, kernel_id: str) -> tuple[dict[str, object], int]:
    """Return a kernel's row, and the version of its family's stream, read before the row."""
    version = workspace.ledger.stream_version(f"kernel:{kernel_id.rpartition('_v')[0]}")
    with _caught_up(workspace) as connection:
        require_kernel(connection, kernel_id)
        cursor = connection.execute(KERNEL, (kernel_id,))
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True)), version


def _caught_up(workspace: Workspace) -> AbstractContextManager[sqlite3.Connection]:
    """Return the tables, after signing and publishing what a killed command left undone."""
    workspace.catch_up()
    return workspace.publication.tables()


def record_decision(
    workspace: Workspace, event: Decision | ReplicationRecorded, *, expected: int, actor: str | None = None
) -> Data:
    """Record the decision if the stream hasn't changed since it was read, then sign and publish it."""
    appended = workspace.append_at(event, expected, actor=actor)
    try:
        workspace.publish()
    except ForgeError as error:
        raise _not_published(workspace, event, appended.first_seq, error) from error
    workspace.sign_decisions()
    workspace.catch_up()
    return _answer(workspace, appended.first_seq, appended.head_hash)


def _answer(workspace: Workspace, seq: int, event_hash: str) -> Data:
    signed_size = workspace.signed_size(seq)
    return {"seq": seq, "event_hash": event_hash, "actor": workspace.actor, "signed_size": signed_size}


def _repeated(workspace: Workspace, event: Decision, seq: object) -> Data | None:
    """Return the answer to a decision that the same person recorded in the same words: the command was repeated."""
    if not isinstance(seq, int):
        return None
    recorded = next(workspace.ledger.read(after_seq=seq - 1, limit=1))
    if recorded.event != event or recorded.actor != workspace.actor:
        return None
    return _answer(workspace, seq, recorded.event_hash)


def _not_published(workspace: Workspace, event: Event, seq: int, error: ForgeError) -> ForgeError:
    """Make sure that no lookup answers with what was withdrawn, though publishing failed; return the error."""
    gone = workspace.publication.withdraw()
    pointer = str(workspace.registry_root / POINTER)
    lookups = (
        f"{pointer!r} was removed, so that no lookup opens the registry as it was before this decision"
        if gone
        else f"{pointer!r} can't be removed, so lookups still answer as before this decision: remove that file"
    )
    kind = StorageFailed if isinstance(error, StorageFailed) else IntegrityError
    return kind(
        f"event {seq} ({event.TYPE}) is recorded, but couldn't be published ({error.__cause__ or error}); "
        f"{lookups}; free space or restore access, then run: {REBUILD_COMMAND}",
        hint=REBUILD_COMMAND,
    )


def _require_not_revoked(row: Data, kernel_id: str) -> None:
    if row["revoked_seq"] is not None:
        raise AlreadyDecided(
            f"kernel {kernel_id!r} was revoked already (event {row['revoked_seq']}), which is final: "
            "nothing was recorded",
            hint=f"forge kernel history {kernel_id}",
        )


def _require_successor(workspace: Workspace, row: Data, kernel_id: str, successor: str) -> None:
    """Raise UsageError unless the successor is an active kernel for the same slot."""
    found, _ = _kernel(workspace, successor)
    slot = ("op", "gpu", "dtype")
    if successor == kernel_id or found["status"] != "active" or any(found[name] != row[name] for name in slot):
        wanted = " ".join(str(row[name]) for name in slot)
        raise UsageError(
            f"{successor!r} can't supersede {kernel_id!r}: expected another kernel for {wanted} that is active, "
            f"this one is for {' '.join(str(found[name]) for name in slot)} and {found['status']}",
            hint="forge kernel list",
        )


def _evidence(workspace: Workspace, given: tuple[str, ...], *, keep: bool) -> tuple[str, ...]:
    """Return evidence as the event names it: `event:<seq>:<hash>`, or a file's `sha256:<digest>`, which is kept."""
    if len(given) > EVIDENCE_LIMIT:
        raise UsageError(f"{len(given)} pieces of evidence: expected at most {EVIDENCE_LIMIT}")
    return tuple(_piece(workspace, one, keep=keep) for one in given)


def _piece(workspace: Workspace, given: str, *, keep: bool) -> str:
    if given.isascii() and given.isdecimal():
        head = workspace.ledger.head.seq
        seq = int(given) if len(given) <= NUMBER_DIGITS else 0
        if not 1 <= seq <= head:
            raise UsageError(
                f"no event {given[:NUMBER_DIGITS]}: expected 1 to {head}, or a file", hint="forge ledger log"
            )
        return f"event:{seq}:{next(workspace.ledger.rows(after_seq=seq - 1, limit=1)).event_hash.hex()}"
    path = Path(given)
    try:
        if not path.is_file() or path.stat().st_size > EVIDENCE_BYTES:
            raise UsageError(
                f"bad evidence {given!r}: expected an event's number or a file of at most {EVIDENCE_BYTES} bytes"
            )
        content = path.read_bytes()
        return f"sha256:{workspace.blobs.put(content) if keep else sha256(content)}"
    except OSError as error:
        raise UsageError(
            f"evidence {given!r} can't be read: {error}; expected an event's number or a file that you may read"
        ) from error


def _benchmark(workspace: Workspace, seq: int) -> BenchmarkRecorded:
    """Return the benchmark at `seq`; raise UsageError if that is no event, or another one."""
    head = workspace.ledger.head.seq
    if not 1 <= seq <= head:
        raise UsageError(
            f"no event {seq}: expected the number of a BenchmarkRecorded, 1 to {head}",
            hint="forge ledger log --type BenchmarkRecorded",
        )
    event = next(workspace.ledger.read(after_seq=seq - 1, limit=1)).event
    if not isinstance(event, BenchmarkRecorded):
        raise UsageError(
            f"event {seq} is {event.TYPE}: expected a BenchmarkRecorded",
            hint="forge ledger log --type BenchmarkRecorded",
        )
    return event
