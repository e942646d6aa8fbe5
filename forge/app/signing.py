"""Issues checkpoints, rotates keys, and writes proofs for a workspace's ledger."""

import os
from pathlib import Path

from forge.app.decisions import NOT_RECORDED
from forge.app.user_paths import make_parent, resolved
from forge.app.workspace import Workspace
from forge.errors import UnknownName, UsageError
from forge.events import KernelPromoted, KernelRevoked
from forge.events.ledger import CheckpointPublished
from forge.ledger.chain import StoredRow
from forge.ledger.durable import write_durably
from forge.ledger.signatures.checkpoints import (
    CHECKPOINT_FILE,
    VERIFIER_FILE,
    adopt,
    issue,
    newest_checkpoint,
    rotatable,
    rotate,
    signing_state,
)
from forge.ledger.signatures.proofs import Signed, prove
from forge.ledger.signatures.signing import SEED_BYTES

Data = dict[str, object]
PUBLIC = 0o644
"""Mode of a written note or proof: every user may read it."""


def checkpoint(workspace: Workspace, *, new_key: bool, copy: Path | None) -> Data:
    """Sign the ledger, publish the note, and write a copy if `copy` is given."""
    if new_key:
        issued = adopt(workspace.ledger, workspace.keyring, os.urandom(SEED_BYTES), actor=workspace.actor)
    else:
        issued = issue(workspace.ledger, workspace.keyring, actor=workspace.actor)
    workspace.publish()
    if copy is not None:
        _write(copy, issued.note)
    return _shown(workspace, issued) | {"copy": str(copy) if copy else None}


def rotate_key(workspace: Workspace, *, dry_run: bool = False) -> Data:
    """Let the key in force name its successor and publish both, or only ask whether it may."""
    if dry_run:
        workspace.ledger.require_writable()
        with workspace.keyring.held():
            key = rotatable(workspace.ledger, workspace.keyring)
        return NOT_RECORDED | {"ledger_id": workspace.ledger.ledger_id, "would_retire": key.verifier}
    issued = rotate(workspace.ledger, workspace.keyring, os.urandom(SEED_BYTES), actor=workspace.actor)
    workspace.publish()
    return _shown(workspace, issued)


def prove_promotion(workspace: Workspace, kernel_id: str, *, out: Path | None) -> Data:
    """Write the proof that a kernel's promotion is in the ledger, against the newest checkpoint that covers it."""
    row = _promotion(workspace, kernel_id)
    newest = newest_checkpoint(workspace.ledger)
    if newest is None or newest.size < row.seq:
        newest = issue(workspace.ledger, workspace.keyring, actor=workspace.actor)
        workspace.publish()
    event = next(workspace.ledger.read(after_seq=row.seq - 1, limit=1)).event
    assert isinstance(event, KernelPromoted)
    listing = workspace.blobs.get(event.artifact_sha256).decode() if event.artifact_sha256 else None
    target = out or Path(f"{kernel_id}.tlog-proof")
    _write(target, prove(workspace.ledger, row, Signed(newest.size, newest.note), listing=listing))
    return {
        "kernel_id": kernel_id,
        "proof": str(target),
        "seq": row.seq,
        "size": newest.size,
        "root": newest.root_hash,
        "key": (state := signing_state(workspace.ledger)).verifier,
        "unvouched_adoptions": list(state.unvouched),
        "revoked": _revoked(workspace, event),
    }


def _promotion(workspace: Workspace, kernel_id: str) -> StoredRow:
    known = []
    for recorded in workspace.ledger.read(types=("KernelPromoted",)):
        assert isinstance(recorded.event, KernelPromoted)
        known.append(recorded.event.kernel_id)
        if recorded.event.kernel_id == kernel_id:
            return next(workspace.ledger.rows(after_seq=recorded.seq - 1, limit=1))
    if not known:
        raise UsageError(f"no kernel {kernel_id!r}: nothing was promoted yet", hint="forge run list")
    raise UnknownName("kernel", kernel_id, known, listed_by="forge kernel list")


def _revoked(workspace: Workspace, promoted: KernelPromoted) -> bool:
    later = workspace.ledger.read(stream=promoted.stream())
    return any(isinstance(one.event, KernelRevoked) and one.event.kernel_id == promoted.kernel_id for one in later)


def _shown(workspace: Workspace, issued: CheckpointPublished) -> Data:
    state = signing_state(workspace.ledger)
    return {
        "origin": state.name,
        "size": issued.size,
        "root": issued.root_hash,
        "key": state.verifier,
        "unvouched_adoptions": list(state.unvouched),
        "checkpoint": str(workspace.registry_root / CHECKPOINT_FILE),
        "key_file": str(workspace.registry_root / VERIFIER_FILE),
        "private_keys": str(workspace.keyring.folder),
    }


def _write(target: Path, text: str) -> None:
    if target.is_dir():
        raise UsageError(f"can't write {str(target)!r}: it is a folder, expected a file's name")
    make_parent(target)
    write_durably(resolved(target), text.encode(), mode=PUBLIC)
