"""Moves bundles between machines: an export ends at a signed checkpoint, an import is only evidence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import orjson

from forge.app.decisions import NOT_RECORDED
from forge.app.workspace import SIGNER, Workspace
from forge.ledger.statements import SELECT_FOREIGN_OF_TYPE
from forge.ledger.transfer.export import Progress
from forge.ledger.transfer.export import export as write
from forge.ledger.transfer.import_bundle import imports
from forge.ledger.transfer.import_bundle import take_in as read
from forge.projections.imported import first_refusal
from forge.proof.files import key_of

Data = dict[str, object]


def export(workspace: Workspace, target: Path, *, since: int, progress: Progress) -> Data:
    """Write the events after `since`, up to a checkpoint that is issued now, with all that they name."""
    made = write(
        workspace.ledger,
        workspace.keyring,
        workspace.blobs,
        target,
        since=since,
        actor=SIGNER,
        progress=progress,
    )
    return {
        "bundle": str(target),
        "ledger_id": made.header.ledger_id,
        "first_seq": made.header.first_seq,
        "size": made.header.size,
        "root": made.root_hash,
        "blobs": made.header.blobs,
        "key": made.header.verifier_key,
        "sha256": made.sha256,
    }


def take_in(
    workspace: Workspace, source: Path, *, key: str | None, progress: Progress, dry_run: bool = False
) -> Data:
    """Check a bundle, and store its events beside ours unless it is a dry run; a second import changes nothing."""
    workspace.ledger.require_writable()
    known = {one.foreign_ledger_id for one in imports(workspace.ledger).values()}
    done = read(
        workspace.ledger,
        workspace.blobs,
        source,
        trusted=None if key is None else key_of(key),
        actor=workspace.actor,
        examine=first_refusal,
        progress=progress,
        only_check=dry_run,
    )
    return (NOT_RECORDED if dry_run else {}) | {
        "ledger_id": done.header.ledger_id,
        "origin": done.header.origin,
        "size": max(done.header.size, done.held),
        "new_events": done.new,
        "root": done.root.hex(),
        "key": done.header.verifier_key,
        "key_trusted_from": _trusted_from(done.header.ledger_id in known, given=key is not None),
    }


def _trusted_from(known: bool, *, given: bool) -> Literal["--key", "an earlier import", "the bundle itself"]:
    """Return where the trust in the bundle's key comes from. Trust from the bundle itself is none."""
    if given:
        return "--key"
    return "an earlier import" if known else "the bundle itself"


def imported(workspace: Workspace) -> list[Data]:
    """Return each imported ledger with its promotions, which are evidence and no kernels of this workspace."""
    return [
        {
            "ledger_id": one.foreign_ledger_id,
            "origin": one.origin,
            "size": one.size,
            "root": one.root_hash,
            "key": one.verifier_key,
            "promotions": _promotions(workspace, one.foreign_ledger_id),
        }
        for one in imports(workspace.ledger).values()
    ]


def _promotions(workspace: Workspace, ledger_id: str) -> list[Data]:
    ended = _ended(workspace, ledger_id)
    invalid = {
        payload.get("benchmark_seq") for _, _, payload in _foreign(workspace, ledger_id, "BenchmarkInvalidated")
    }
    return [
        {
            "seq": seq,
            "recorded_at": recorded_at,
            "kernel_id": str(payload.get("kernel_id")),
            "candidate": payload.get("candidate"),
            "status": _status(
                ended.get(payload.get("kernel_id")), is_invalid=payload.get("benchmark_seq") in invalid
            ),
        }
        for seq, recorded_at, payload in _foreign(workspace, ledger_id, "KernelPromoted")
    ]


def _ended(workspace: Workspace, ledger_id: str) -> Mapping[object, str]:
    """Return kernel -> what became of it there, the gravest last."""
    ended: dict[object, str] = {}
    for kind, state in (
        ("KernelDeprecated", "deprecated"),
        ("ReplicationRecorded", "not_replicated"),
        ("KernelRevoked", "revoked"),
    ):
        for _, _, payload in _foreign(workspace, ledger_id, kind):
            if payload.get("outcome", "contradicted") == "contradicted":
                ended[payload.get("kernel_id")] = state
    return ended


def _status(ended: str | None, *, is_invalid: bool) -> str:
    """Return a kernel's status there; a revocation is graver than a withdrawn benchmark."""
    return "evidence_invalid" if is_invalid and ended != "revoked" else ended or "promoted"


def _foreign(workspace: Workspace, ledger_id: str, kind: str) -> list[tuple[int, str, Data]]:
    """Return place, time and payload of another ledger's events of one type, which a newer Forge may have written."""
    with workspace.ledger.snapshot() as connection:
        rows = connection.execute(SELECT_FOREIGN_OF_TYPE, (ledger_id, kind)).fetchall()
    return [(seq, recorded_at, orjson.loads(payload)) for seq, recorded_at, payload in rows]
