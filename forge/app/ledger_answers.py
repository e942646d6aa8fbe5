"""Answers questions about the ledger itself: which events it holds, and whether it is whole."""

from dataclasses import asdict
from pathlib import Path

from forge.app.envelope import in_envelope
from forge.app.home import LEDGER_FILE, REGISTRY_FOLDER, RUNS_FOLDER
from forge.app.key_folder import kept_beside
from forge.app.workspace import Workspace
from forge.ledger.audit.history import audit
from forge.projections.imported import imported_refusals
from forge.projections.read_through import refusals
from forge.proof.files import key_of, read

Data = dict[str, object]


def recorded_events(
    workspace: Workspace, *, after_seq: int, limit: int | None, types: tuple[str, ...] | None
) -> list[Data]:
    """Return the events after `after_seq` in order, with their envelopes; `types` and `limit` restrict them."""
    found = workspace.ledger.read(after_seq=after_seq, types=types, limit=limit)
    return [in_envelope(recorded, recorded.event.model_dump(mode="json")) for recorded in found]


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
        kept=kept_beside(home, home / REGISTRY_FOLDER),
    )
    refused = refusals(home / LEDGER_FILE, after=report, full=full)
    refused += imported_refusals(home / LEDGER_FILE, after=report)
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
