"""Issues checkpoints, rotates keys, and writes proofs for a workspace's ledger."""

import os
from pathlib import Path

from forge.app.kernels.decisions import NOT_RECORDED
from forge.app.ledger.promotion_proof import covering_checkpoint, promotion_of, prove_promotion
from forge.app.plain_events import OfWorkspace
from forge.app.user.user_paths import writable, write_public
from forge.app.workspace import Workspace
from forge.events.ledger import CheckpointPublished
from forge.ledger.signatures.checkpoints import (
    CHECKPOINT_FILE,
    VERIFIER_FILE,
    adopt,
    issue,
    rotatable,
    rotate,
    signing_state,
)
from forge.ledger.signatures.signing import SEED_BYTES

Data = dict[str, object]


def checkpoint(workspace: Workspace, *, new_key: bool, copy: Path | None) -> Data:
    """Sign the ledger, publish the note, and write a copy if `copy` is given."""
    if copy is not None:
        writable(copy)  # before anything is signed
    if new_key:
        issued = adopt(workspace.ledger, workspace.keyring, os.urandom(SEED_BYTES), actor=workspace.actor)
    else:
        issued = issue(workspace.ledger, workspace.keyring, actor=workspace.actor)
    workspace.publish()
    if copy is not None:
        write_public(copy, issued.note)
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


def prove_with_checkpoint(workspace: Workspace, kernel_id: str, *, out: Path | None) -> Data:
    """Write the proof of a kernel's promotion; sign a checkpoint first if the newest one doesn't cover it."""
    if out is not None:
        writable(out)
    home = OfWorkspace(workspace)
    if covering_checkpoint(home, promotion_of(home, kernel_id).seq) is None:
        issue(workspace.ledger, workspace.keyring, actor=workspace.actor)
        workspace.publish()
    return prove_promotion(home, kernel_id, out=out)


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
