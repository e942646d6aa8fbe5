"""Signs the ledger's size and root, and refuses if that would contradict an earlier signature.

The order is fixed. Events are durable before they are read. A note is stored beside the key before it is recorded,
and recorded before it is published. A crash between two steps leaves a note that the next checkpoint extends.
"""

import base64

from forge.errors import CheckpointRefused, UsageError
from forge.events.ledger import CheckpointPublished, LedgerKeyAdopted, LedgerKeyRotated
from forge.ledger.signatures.key_in_force import KEY_EVENTS, SigningState, key_in_force
from forge.ledger.signatures.keyring import Keyring, SignedHead
from forge.ledger.signatures.signing import (
    SigningKey,
    checkpoint_text,
    rotation_text,
    signed_note,
)
from forge.ledger.store import Ledger
from forge.ledger.tree import StoredTree
from forge.proof.tree import extends

VERIFIER_FILE = "ledger.vkey"
"""Name of the published file with the verifier key."""
CHECKPOINT_FILE = "checkpoint"
"""Name of the published file with the newest checkpoint."""
DECISIVE = (
    "BenchmarkInvalidated",
    "DeviceCalibrated",
    "KernelDeprecated",
    "KernelPromoted",
    "KernelRevoked",
    "LedgerRestored",
    "ModelMeasured",
    "ReplicationRecorded",
    "RunSealed",
)
"""Types of events after which a checkpoint is issued."""


def signing_state(ledger: Ledger) -> SigningState:
    """Return the log's name and the key in force."""
    recorded = ledger.read(types=KEY_EVENTS)
    return key_in_force((one.seq, one.event.TYPE, one.event.model_dump(mode="json")) for one in recorded)


def newest_checkpoint(ledger: Ledger) -> CheckpointPublished | None:
    """Return the last checkpoint that the ledger records."""
    newest = ledger.newest(CheckpointPublished.TYPE)
    if newest is None:
        return None
    assert isinstance(newest.event, CheckpointPublished)
    return newest.event


def issue(ledger: Ledger, keyring: Keyring, *, actor: str) -> CheckpointPublished:
    """Sign all events, record the note, and return it.

    Raises UsageError without a key, CheckpointRefused if the ledger doesn't extend what was signed before.
    """
    with keyring.held():
        public = signing_state(ledger).public
        if public is None:
            raise UsageError(
                "this ledger has no key to sign its checkpoints with (it was begun by an older Forge): make one",
                hint="forge ledger checkpoint --new-key",
            )
        return _issue(ledger, keyring, (keyring.load(public),), actor=actor)


def adopt(ledger: Ledger, keyring: Keyring, seed: bytes, *, actor: str) -> CheckpointPublished:
    """Bring a new key into force that no other key vouches for; raise UsageError if the key in force is at hand."""
    with keyring.held():
        public = signing_state(ledger).public
        if public is not None and keyring.has(public):
            raise UsageError(
                "this ledger has a key that can name its successor: use that "
                "instead of a new key that no key vouches for",
                hint="forge ledger rotate-key",
            )
        key = keyring.make(seed)
        event = LedgerKeyAdopted(ledger_id=ledger.ledger_id, public_key=_text(key.public))
        _append(ledger, event, actor=actor, key=f"key:{key.key_id.hex()}")
        return _issue(ledger, keyring, (key,), actor=actor)


def rotate(ledger: Ledger, keyring: Keyring, seed: bytes, *, actor: str) -> CheckpointPublished:
    """Let the key in force name its successor; both sign the first checkpoint after that."""
    with keyring.held():
        old = rotatable(ledger, keyring)
        new = keyring.make(seed)
        note = signed_note(rotation_text(keyring.name, old.verifier, new.verifier), (old,))
        event = LedgerKeyRotated(ledger_id=ledger.ledger_id, public_key=_text(new.public), note=note)
        _append(ledger, event, actor=actor, key=f"key:{new.key_id.hex()}")
        issued = _issue(ledger, keyring, (old, new), actor=actor)
        keyring.retire(old.public)
        return issued


def rotatable(ledger: Ledger, keyring: Keyring) -> SigningKey:
    """Return the key in force, which signs its successor.

    Raises UsageError if no key signs this ledger, and what `rotate` raises if the ledger lacks what was signed.
    """
    public = signing_state(ledger).public
    if public is None:
        raise UsageError("this ledger has no key that could name another", hint="forge ledger checkpoint --new-key")
    key = keyring.load(public)
    with ledger.tree() as tree:
        require_extension(tree, keyring.last)
    return key


def sign_text(ledger: Ledger, keyring: Keyring, text: str) -> str | None:
    """Return the signed text of a publication; None if the key isn't at hand or refuses to sign this ledger."""
    public = signing_state(ledger).public
    if public is None or not keyring.has(public):
        return None
    try:
        with keyring.held():
            with ledger.tree() as tree:
                require_extension(tree, keyring.last)
            return signed_note(text, (keyring.load(public),))
    except (CheckpointRefused, UsageError):  # `issue` reports the reason
        return None


def require_continued(ledger: Ledger, keyring: Keyring) -> None:
    """Raise CheckpointRefused unless the ledger is what was signed last, or its continuation.

    It was cut off, is an older copy, went on from an older copy, or was rewritten.
    """
    last = keyring.last
    if last is not None:
        with ledger.tree() as tree:
            require_extension(tree, last)


def _issue(ledger: Ledger, keyring: Keyring, keys: tuple[SigningKey, ...], *, actor: str) -> CheckpointPublished:
    with ledger.tree() as tree:
        last = keyring.last
        require_extension(tree, last)
        size, root = tree.size, tree.root()
    if last is not None and size == last.size + 1:
        recorded = newest_checkpoint(ledger)
        if recorded is not None and recorded.size == last.size and len(keys) == 1:
            return recorded  # the only later event is the record of that checkpoint
    note = signed_note(checkpoint_text(keyring.name, size, root), keys)
    keyring.remember(note)
    event = CheckpointPublished(ledger_id=ledger.ledger_id, size=size, root_hash=root.hex(), note=note)
    _append(ledger, event, actor=actor, key=f"checkpoint:{size}")
    return event


def _append(
    ledger: Ledger,
    event: CheckpointPublished | LedgerKeyAdopted | LedgerKeyRotated,
    *,
    actor: str,
    key: str,
) -> None:
    ledger.append((event,), actor=actor, correlation_id=event.stream(), idempotency_key=key)


def require_extension(tree: StoredTree, last: SignedHead | None) -> None:
    """Raise CheckpointRefused unless the tree begins with the events that were signed last.

    `last` is None if nothing was signed yet. A consistency proof shows the rest.
    """
    if last is None:
        return
    _require_reaches(tree.size, last)
    path = tree.consistency(last.size, tree.size)
    if not extends(last.size, last.root, tree.size, tree.root(), path):
        raise CheckpointRefused(
            f"the first {last.size} events aren't those that were signed (root {last.root.hex()}, now "
            f"{tree.root(last.size).hex()}): history was rewritten; restore the ledger from a copy",
            hint="forge ledger verify",
        )


def _require_reaches(size: int, last: SignedHead) -> None:
    if size < last.size:
        raise CheckpointRefused(
            f"the ledger has {size} events, {last.size} were signed: it was cut off, or is an older copy; "
            "restore the newest one",
            hint="forge ledger verify",
        )


def _text(public: bytes) -> str:
    return base64.b64encode(public).decode()
