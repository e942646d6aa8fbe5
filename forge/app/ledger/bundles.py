"""Moves bundles between machines: an export ends at a signed checkpoint, an import is only evidence."""

from pathlib import Path
from typing import Literal

from forge.app.kernels.decisions import NOT_RECORDED
from forge.app.user.user_paths import writable
from forge.app.workspace import SIGNER, Workspace
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
        writable(target),
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
