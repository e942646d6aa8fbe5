"""Writes a bundle: events up to a signed checkpoint, and the blobs that they need."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forge.domain.digest import Digest
from forge.errors import UsageError
from forge.events.ledger import CheckpointPublished, LedgerOpened
from forge.ledger.blobs import BlobStore
from forge.ledger.durable import PUBLIC, written_aside
from forge.ledger.signatures.checkpoints import issue, newest_checkpoint, signing_state
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.store import Ledger
from forge.ledger.transfer.bundle import BundleHeader, write_bundle
from forge.ledger.transfer.named_blobs import NamedBlobs

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """Content of a bundle that was written."""

    header: BundleHeader
    root_hash: Digest
    sha256: Digest
    """Digest on its last line."""


def export(
    ledger: Ledger,
    keyring: Keyring,
    blobs: BlobStore,
    target: Path,
    *,
    since: int,
    actor: str,
    progress: Progress,
) -> Exported:
    """Write the events after `since`, up to a checkpoint that is issued now, with all blobs that they name.

    Raises UsageError if there is no checkpoint and no key to make one, or no event after `since`.
    """
    if not target.parent.is_dir() or target.is_dir():
        raise UsageError(f"can't write {str(target)!r}: expected a file's name in a folder that exists")
    checkpoint = _checkpoint(ledger, keyring, actor)
    if since >= checkpoint.size:
        raise UsageError(
            f"no events after {since} to export: the newest checkpoint covers {checkpoint.size}, expected a number "
            "below that"
        )
    count = checkpoint.size - since
    named = NamedBlobs(blobs)
    for row in ledger.rows(after_seq=since, limit=count):
        named.add(row.payload)
    progress(f"{count} events, {len(named.digests)} blobs")
    header = _header(ledger, checkpoint, since=since, blobs=len(named.digests))
    with written_aside(target, mode=PUBLIC) as stream:
        rows = ledger.rows(after_seq=since, limit=count)
        digest = write_bundle(stream, header, rows, named.digests, blobs)
    return Exported(header, checkpoint.root_hash, digest)


def _header(ledger: Ledger, checkpoint: CheckpointPublished, *, since: int, blobs: int) -> BundleHeader:
    (opened,) = ledger.read(limit=1)
    verifier = signing_state(ledger).verifier
    assert isinstance(opened.event, LedgerOpened)
    assert verifier is not None, "there is a checkpoint"
    return BundleHeader(
        ledger_id=ledger.ledger_id,
        origin=opened.event.origin,
        first_seq=since + 1,
        size=checkpoint.size,
        blobs=blobs,
        note=checkpoint.note,
        verifier_key=verifier,
    )


def _checkpoint(ledger: Ledger, keyring: Keyring, actor: str) -> CheckpointPublished:
    """Return a checkpoint of all events, or the newest one without the key; raise UsageError without any."""
    public = signing_state(ledger).public
    if public is not None and keyring.has(public):
        return issue(ledger, keyring, actor=actor)
    newest = newest_checkpoint(ledger)
    if newest is None:
        raise UsageError(
            "this ledger has no checkpoint, and no key to sign one with: a bundle ends at a signed checkpoint",
            hint="forge ledger checkpoint --new-key",
        )
    return newest
