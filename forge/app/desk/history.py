"""The ledger as documents: events, the checkpoint, and proofs of inclusion and consistency."""

from forge.app.access.tokens import Caller
from forge.app.desk.event_teller import Teller
from forge.app.desk.paging import page, parse_cursor
from forge.app.desk.view import View
from forge.errors import NotFound, UsageError
from forge.ledger.signatures.checkpoints import newest_checkpoint, signing_state

Data = dict[str, object]


def events(view: View, caller: Caller, *, after: str | None, types: tuple[str, ...] | None, limit: int) -> Data:
    """Return a page of events in order, the oldest first.

    `limit` is the largest number of events.
    """
    after_seq = parse_cursor(view, after) or 0
    found = events_after(view, caller, after_seq, types=types, limit=limit + 1)
    return page(found, limit=limit, view=view, seq_of=lambda one: int(str(one["seq"])))


def events_after(
    view: View, caller: Caller, seq: int, *, types: tuple[str, ...] | None = None, limit: int
) -> list[Data]:
    """Return up to `limit` events after `seq`, in order, without what the caller isn't told."""
    teller = Teller(view.workspace, caller)
    return [teller.told(one) for one in view.workspace.ledger.read(after_seq=seq, types=types, limit=limit)]


def event_document(view: View, caller: Caller, seq: int) -> Data:
    """Return one event with the hash of the event before it; raise NotFound beyond the head."""
    if not 1 <= seq <= view.head.seq:
        raise NotFound(f"no event {seq}: expected 1 to {view.head.seq}, the ledger's head", hint="forge ledger log")
    recorded = next(view.workspace.ledger.read(after_seq=seq - 1, limit=1))
    row = next(view.workspace.ledger.rows(after_seq=seq - 1, limit=1))
    return {
        **Teller(view.workspace, caller).told(recorded),
        "event_id": recorded.event_id,
        "causation_id": recorded.causation_id,
        "schema_version": row.schema_version,
        "payload_sha256": row.payload_sha256.hex(),
        "prev_hash": row.prev_hash.hex(),
    }


def checkpoint(view: View) -> Data:
    """Return the newest signed checkpoint and the key that signs; raise NotFound if there is none."""
    newest, state = newest_checkpoint(view.workspace.ledger), signing_state(view.workspace.ledger)
    if newest is None:
        raise NotFound(
            "this ledger has no checkpoint yet: expected one that is signed", hint="forge ledger checkpoint"
        )
    return {
        "origin": state.name,
        "size": newest.size,
        "root": newest.root_hash,
        "note": newest.note,
        "key": state.verifier,
        "unvouched_adoptions": list(state.unvouched),
    }


def inclusion(view: View, *, seq: int, size: int | None) -> Data:
    """Return the proof that event `seq` is in the tree of the first `size` events (RFC 6962, section 2.1.1).

    Raises UsageError if the event isn't among the first `size`, or the ledger is shorter.
    """
    size = _size(view, size)
    if not 1 <= seq <= size:
        raise UsageError(f"event {seq} is none of the first {size}: expected 1 to {size}")
    row = next(view.workspace.ledger.rows(after_seq=seq - 1, limit=1))
    with view.workspace.ledger.tree() as tree:
        path, root = tree.inclusion(seq - 1, size), tree.root(size)
    proof = [one.hex() for one in path]
    return {"seq": seq, "size": size, "root": root.hex(), "event_hash": row.event_hash.hex(), "proof": proof}


def consistency(view: View, *, old_size: int, size: int | None) -> Data:
    """Return the proof that the first `size` events extend the first `old_size` (RFC 6962, section 2.1.2).

    Raises UsageError unless 1 <= `old_size` <= `size`, or if the ledger is shorter.
    """
    size = _size(view, size)
    if not 1 <= old_size <= size:
        raise UsageError(f"old size {old_size}: expected 1 to {size}")
    with view.workspace.ledger.tree() as tree:
        path, old_root, root = tree.consistency(old_size, size), tree.root(old_size), tree.root(size)
    found = {"old_size": old_size, "old_root": old_root.hex(), "size": size, "root": root.hex()}
    return {**found, "proof": [one.hex() for one in path]}


def _size(view: View, size: int | None) -> int:
    head = view.head.seq
    if size is None:
        return head
    if not 1 <= size <= head:
        raise UsageError(f"size {size}: expected 1 to {head}, the ledger's head")
    return size
