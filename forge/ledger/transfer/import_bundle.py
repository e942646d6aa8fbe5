"""Imports another ledger's events as evidence, after the whole bundle was checked.

Other writers go on while the bundle is checked and its blobs are stored. Then all rows are stored in one transaction,
together with the event that describes them. If a crash could leave only some of the rows, no event would describe
them, and the audit would report damage. Other writers wait for this transaction, and none is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.events.ledger import LedgerImported
from forge.ledger.batch import Batch
from forge.ledger.blobs import BlobStore
from forge.ledger.chain import StoredRow, event_hash
from forge.ledger.failures import storage_errors
from forge.ledger.lock import WriterLock
from forge.ledger.store import Ledger
from forge.ledger.transfer.bundle import UntrustedBundle
from forge.ledger.transfer.check_bundle import CheckedBundle, Examine, Progress, check
from forge.proof.note import VerifierKey


def take_in(
    ledger: Ledger,
    blobs: BlobStore,
    source: Path,
    *,
    trusted: VerifierKey | None,
    actor: str,
    examine: Examine,
    progress: Progress,
    only_check: bool = False,
) -> CheckedBundle:
    """Check a bundle, then store its events beside this ledger's own; a second import changes nothing.

    `examine` reads all of its events as their readers do. `only_check` stores nothing.

    Raises what `check` raises; nothing is written in these cases.
    """
    with _one_at_a_time(ledger), UntrustedBundle(source) as bundle:
        before = imports(ledger).get(bundle.header.ledger_id)
        known = before.verifier_key if before else None
        checked = check(bundle, ledger, blobs, trusted=trusted, before=known, examine=examine, progress=progress)
        if checked.new and not only_check:
            progress(f"storing {checked.header.blobs} blobs and {checked.new} events")
            store_blobs(bundle, blobs)
            ledger.take_in(checked.header.ledger_id, new_rows(bundle, checked), _batch(ledger, checked, actor))
    return checked


def imports(ledger: Ledger) -> dict[str, LedgerImported]:
    """Return the latest import of each other ledger."""
    found = {}
    for recorded in ledger.read(types=("LedgerImported",)):
        if isinstance(recorded.event, LedgerImported):
            found[recorded.event.foreign_ledger_id] = recorded.event
    return found


@contextmanager
def _one_at_a_time(ledger: Ledger) -> Iterator[None]:
    """Let one import run at a time; other writers go on until the rows are stored."""
    with storage_errors(ledger.path):
        lock = WriterLock(ledger.path.with_name(f"{ledger.path.name}.import"))
    try:
        with lock.held():
            yield
    finally:
        lock.close()


def _batch(ledger: Ledger, checked: CheckedBundle, actor: str) -> Batch:
    header = checked.header
    event = LedgerImported(
        ledger_id=ledger.ledger_id,
        foreign_ledger_id=header.ledger_id,
        origin=header.origin,
        first_seq=checked.held + 1,
        size=header.size,
        root_hash=checked.root.hex(),
        head_hash=checked.head_hash.hex(),
        note=header.note,
        verifier_key=header.verifier_key,
        bundle_sha256=checked.bundle_sha256,
    )
    return Batch(
        events=[event],
        actor=actor,
        correlation_id=event.stream(),
        idempotency_key=f"import:{header.ledger_id}:{header.size}",
    )


def new_rows(bundle: UntrustedBundle, checked: CheckedBundle) -> Iterator[StoredRow]:
    """Yield the rows that aren't here yet, read again; raise BundleRefused if they changed since the check."""
    bundle.rewind()
    last = b""
    for row in bundle.rows():
        if row.event_hash != event_hash(row) or (last and row.prev_hash != last):
            raise bundle.refused(f"event {row.seq} was changed while it was read")
        last = row.event_hash
        if row.seq > checked.held:
            yield row
    if last != checked.head_hash:
        raise bundle.refused("it was changed while it was read")


def store_blobs(bundle: UntrustedBundle, blobs: BlobStore) -> int:
    """Store every blob of a checked bundle; return how many there were."""
    bundle.rewind()
    for _ in bundle.event_lines():
        pass
    count = 0
    for digest, chunks in bundle.blobs():
        blobs.put_stream(digest, chunks)
        count += 1
    return count
