"""Publishes the registry of one workspace, builds it anew, and reads it."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from forge.app.stored.hide_undecided import hide_undecided
from forge.app.stored.leave_out_machines import leave_out
from forge.errors import ProofRefused, StorageFailed
from forge.events import KernelPromoted
from forge.ledger.blobs import BlobStore
from forge.ledger.signatures.checkpoints import CHECKPOINT_FILE, VERIFIER_FILE, newest_checkpoint, signing_state
from forge.ledger.store import Ledger
from forge.lookup.artifact import LISTING_FILE
from forge.projections.catch_up import FILE, Cursor, built, own_cursor, publishing_errors
from forge.projections.fold import Position
from forge.projections.publish import PublishedPointer, StoredFiles, publish, read_pointer, republish, withdraw
from forge.projections.source import LedgerSource
from forge.projections.sqlite_file import connect
from forge.proof.note import parse_key
from forge.proof.publication import publication_text, require_vouched

TEMPORARY_PREFIX = "forge-history-"
"""Prefix of a temporary folder with a history that couldn't be published."""


@dataclass(frozen=True)
class Publication:
    """The registry under `root`, published from `ledger`."""

    root: Path
    ledger: Ledger
    blobs: BlobStore
    sign: Callable[[str], str | None]
    """Function that signs a text with the ledger's key; it returns None if the key isn't at hand."""
    signs: Callable[[], bool] = lambda: False
    """Function that says whether the key is at hand."""
    left_out: frozenset[str] = frozenset()
    """Environments whose evidence isn't in `tables`."""
    decided: frozenset[str] | None = None
    """States of the runs whose figures are in `tables`; None: those of all runs."""

    @property
    def seq(self) -> int:
        """Return the number of the event up to which the registry is published; 0 if none can be read."""
        shown = read_pointer(self.root)
        return shown.position.seq if shown and shown.position.ledger_id == self.ledger.ledger_id else 0

    def is_current(self) -> bool:
        """Return whether it is at the ledger's head; False if the ledger was replaced by an older or another one."""
        shown, head = read_pointer(self.root), self.ledger.head
        found = shown and (shown.position.ledger_id, shown.position.seq, shown.position.event_hash)
        return found == (self.ledger.ledger_id, head.seq, head.event_hash)

    def has_tables(self) -> bool:
        """Return whether the tables were built here, at whatever event they stand."""
        return (self.root / FILE).exists()

    def bring_up(self) -> None:
        """Publish the events since the last publication."""
        publish(self.root, self._source, self._files)

    def build_anew(self) -> list[dict[str, object]]:
        """Fold everything from the first event and publish it; return how each published file differed."""
        compared = republish(self.root, self._source, self._files)
        return [asdict(one) for one in compared]

    def withdraw(self) -> bool:
        """Remove the pointer, so that lookups find no registry; return whether that was possible."""
        return withdraw(self.root)

    @contextmanager
    def tables(self) -> Iterator[sqlite3.Connection]:
        """Yield `history.db` at the ledger's head, for reading."""
        with self.tables_file() as path, closing(connect(path, read_only=True)) as connection:
            if self.left_out:
                leave_out(connection, self.ledger, self.left_out)
            if self.decided is not None:
                hide_undecided(connection, self.decided)
            yield connection

    @contextmanager
    def tables_file(self) -> Iterator[Path]:
        """Yield the file of `tables`; if nothing can be published, a temporary one folded from the ledger."""
        with ExitStack() as made:
            yield self._published_tables() or made.enter_context(self._folded_tables())

    def _published_tables(self) -> Path | None:
        try:
            if not (self.is_current() and self._tables_stand()):
                self.bring_up()
        except StorageFailed:
            return None
        return self.root / FILE

    @contextmanager
    def _folded_tables(self) -> Iterator[Path]:
        source = self._source()
        with ExitStack() as made:
            with publishing_errors(Path(tempfile.gettempdir()), source):
                folder = Path(made.enter_context(tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX)))
                path, _ = made.enter_context(built(folder, source))
            yield path

    def _tables_stand(self) -> bool:
        try:
            with closing(connect(self.root / FILE, read_only=True)) as connection:
                cursor = own_cursor(connection)
        except sqlite3.DatabaseError:
            return False
        return cursor is not None and cursor.seq == self.ledger.head.seq and cursor.head.stands_in(self._source())

    def _note(self, head: Position, sha256: str) -> str | None:
        """Return the signed note for a pointer; without the key, the existing note if it still fits."""
        name = signing_state(self.ledger).name
        text = publication_text(name, seq=head.seq, event_hash=head.event_hash, sha256=sha256)
        shown = read_pointer(self.root)
        kept = shown.note if shown and isinstance(shown.note, str) and shown.note.startswith(f"{text}\n") else None
        return self.sign(text) or kept

    def _vouched(self, shown: PublishedPointer) -> bool:
        """Return whether the key in force signed exactly this publication."""
        state = signing_state(self.ledger)
        if state.verifier is None:
            return False
        at, key = shown.position, parse_key(state.verifier)
        said = {"ledger_id": at.ledger_id, "event_hash": at.event_hash, "sha256": shown.sha256}
        try:
            require_vouched(shown.note, key, seq=at.seq, **said)
        except ProofRefused:
            return False
        return True

    def _source(self) -> LedgerSource:
        return LedgerSource(self.ledger)

    @property
    def _files(self) -> StoredFiles:
        return StoredFiles(
            of_kernel=self._kernel_files,
            of_operation=self._operation_files,
            others=self._signed_files,
            sign=self._note,
            vouched=self._vouched if self.signs() else None,
        )

    def _operation_files(self, op: str, description_sha256: str, reference_sha256: str) -> Mapping[str, bytes]:
        named = {f"ops/{op}.json": description_sha256, f"ops/{op}.py": reference_sha256}
        return {name: self.blobs.get(digest) for name, digest in named.items()}

    def _kernel_files(self, kernel: KernelPromoted) -> Mapping[str, bytes]:
        folder = f"kernels/{kernel.kernel_id}"
        files = {f"{folder}/{file.path}": self.blobs.get(file.sha256) for file in kernel.files}
        if kernel.artifact_sha256 is not None:
            listed = self.blobs.get(kernel.artifact_sha256)
            listing = orjson.loads(listed)
            files[f"{folder}/{LISTING_FILE}"] = listed
            files |= {f"{folder}/{file['path']}": self.blobs.get(file["sha256"]) for file in listing["files"]}
        return files

    def _signed_files(self, _: Cursor) -> Mapping[str, bytes]:
        """Return the key in force and the newest checkpoint, for independent verifiers; none without a key."""
        verifier, files = signing_state(self.ledger).verifier, dict[str, bytes]()
        if verifier is not None:
            files[VERIFIER_FILE] = f"{verifier}\n".encode()
        newest = newest_checkpoint(self.ledger)
        if newest is not None:
            files[CHECKPOINT_FILE] = newest.note.encode()
        return files
