"""Answers questions about the ledger itself: which events it holds, and whether it is whole."""

import contextlib
from dataclasses import asdict
from pathlib import Path

from forge.app.ledger.recorded_policies import policy_problems
from forge.app.stored.keys_place import keys_folder
from forge.app.user.home import LEDGER_FILE, REGISTRY_FOLDER, RUNS_FOLDER
from forge.app.user.user_paths import read_regular
from forge.app.workspace import Workspace
from forge.events import Event, Recorded
from forge.ledger.audit.history import audit
from forge.ledger.audit.report import KeptCheckpoint
from forge.ledger.signatures.checkpoints import CHECKPOINT_FILE
from forge.projections.imported import imported_refusals
from forge.projections.reader_refusals import are_sound, refusals
from forge.proof.files import key_of, read
from forge.proof.note import NOTE_LIMIT_BYTES

Data = dict[str, object]


def recorded_events(
    workspace: Workspace, *, after_seq: int, limit: int | None, types: tuple[str, ...] | None
) -> list[Data]:
    """Return the events after `after_seq` in order, with their envelopes; `types` and `limit` restrict them."""
    found = workspace.ledger.read(after_seq=after_seq, types=types, limit=limit)
    return [in_envelope(recorded, recorded.event.model_dump(mode="json")) for recorded in found]


def in_envelope(recorded: Recorded[Event], payload: object) -> Data:
    """Return what is shown of an event: its place, time and writer beside its payload."""
    return {
        "seq": recorded.seq,
        "type": recorded.event.TYPE,
        "stream": recorded.stream,
        "stream_version": recorded.stream_version,
        "recorded_at": recorded.recorded_at,
        "actor": recorded.actor,
        "run": recorded.correlation_id,
        "event_hash": recorded.event_hash,
        "payload": payload,
    }


def verify_ledger(home: Path, *, checkpoint: Path | None = None, key: str | None = None, full: bool = False) -> Data:
    """Audit the ledger at `home` from its raw rows, then read all of it as its readers do; return the report.

    `checkpoint` is the file of a note that was kept elsewhere. `key` is the verifier key to trust, or a file with it.
    The audit always compares the ledger with the published checkpoint, and with what the keys signed last.
    """
    report = audit(
        home / LEDGER_FILE,
        runs=home / RUNS_FOLDER,
        checkpoint=None if checkpoint is None else read(checkpoint),
        key=None if key is None else key_of(key),
        full=full,
        kept=_kept_beside(home, home / REGISTRY_FOLDER),
    )
    refused = refusals(home / LEDGER_FILE, after=report, full=full)
    refused += imported_refusals(home / LEDGER_FILE, after=report)
    if full and are_sound(report):
        refused += policy_problems(home / LEDGER_FILE, home / RUNS_FOLDER)
    found, vouching = report.checkpoint, report.vouching
    return {
        "ok": report.ok and not refused,
        "events": report.events,
        "size": report.events,
        "imported": report.imported,
        "head": report.head,
        "root": report.root,
        "signed": report.signed,
        "keys": [asdict(one) for one in report.keys],
        "verdict": vouching.verdict if vouching else None,
        "vouched_for": vouching.vouched_for if vouching else None,
        "unvouched": vouching.unvouched if vouching else None,
        "checkpoint": None if found is None else asdict(found),
        "problems": [asdict(problem) for problem in (*report.problems, *refused)],
    }


def _kept_beside(home: Path, registry: Path) -> tuple[KeptCheckpoint, ...]:
    """Return the published checkpoint and what the keys signed last, as far as this user can read them."""
    keys = keys_folder(home)
    found = [_kept(registry / CHECKPOINT_FILE, f"{registry.name}/{CHECKPOINT_FILE}", of_this=True)]
    with contextlib.suppress(OSError):  # the folder may be another user's
        notes = sorted(keys.glob("*.checkpoint"))
        found += [_kept(path, f"{keys.name}/{path.name}", of_this=False) for path in notes]
    return tuple(one for one in found if one is not None)


def _kept(path: Path, where: str, *, of_this: bool) -> KeptCheckpoint | None:
    try:
        return KeptCheckpoint(where, read_regular(path, limit_bytes=NOTE_LIMIT_BYTES), of_this)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, ValueError) as error:
        return KeptCheckpoint(where, f"unreadable: {error}".encode(), of_this)
