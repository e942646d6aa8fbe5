"""Writes the proof that a kernel's promotion is in the ledger. It loads no models."""

from pathlib import Path

from forge.app.known_kernel import require_known
from forge.app.ledger.signing_key import signing_state_of
from forge.app.plain_events import HasTree
from forge.app.user.home import RUNS_FOLDER
from forge.app.user.user_paths import write_public
from forge.ledger.blobs import BlobStore
from forge.ledger.chain import StoredRow
from forge.ledger.plain_rows import AT, PlainEvent
from forge.ledger.runs.names import CAS
from forge.ledger.signatures.proofs import Signed, prove

Data = dict[str, object]
NEWEST_CHECKPOINT = "SELECT seq FROM event WHERE type = 'CheckpointPublished' ORDER BY seq DESC LIMIT 1"
"""Query for the number of the newest checkpoint's event."""


def promotion_of(home: HasTree, kernel_id: str) -> PlainEvent:
    """Return the promotion of a kernel; raise UnknownName, or UsageError if nothing was promoted yet."""
    promoted = {one.event["kernel_id"]: one for one in home.events("KernelPromoted")}
    require_known(kernel_id, promoted)
    return promoted[kernel_id]


def covering_checkpoint(home: HasTree, seq: int) -> PlainEvent | None:
    """Return the newest checkpoint; None if there is none, or if it doesn't cover the event at a place."""
    found = home.rows(NEWEST_CHECKPOINT, ())
    newest = home.event(found[0][0]) if found else None
    return newest if newest is not None and newest.event["size"] >= seq else None


def prove_promotion(home: HasTree, kernel_id: str, *, out: Path | None) -> Data:
    """Write the proof against the newest checkpoint; raise KeyError if a checkpoint must be issued first."""
    promotion = promotion_of(home, kernel_id)
    newest = covering_checkpoint(home, promotion.seq)
    if newest is None:
        raise KeyError("CheckpointPublished")
    (row,) = home.rows(AT, (promotion.seq,))
    size, artifact = newest.event["size"], promotion.event["artifact_sha256"]
    listing = BlobStore(home.home / RUNS_FOLDER / CAS).get(artifact).decode() if artifact else None
    target, state = out or Path(f"{kernel_id}.tlog-proof"), signing_state_of(home)
    with home.tree() as tree:
        proof = prove(tree, StoredRow._make(row), Signed(size, newest.event["note"]), listing=listing)
    write_public(target, proof)
    return {
        "kernel_id": kernel_id,
        "proof": str(target),
        "seq": promotion.seq,
        "size": size,
        "root": newest.event["root_hash"],
        "key": state.verifier,
        "unvouched_adoptions": list(state.unvouched),
        "revoked": any(one.event["kernel_id"] == kernel_id for one in home.events("KernelRevoked")),
    }
