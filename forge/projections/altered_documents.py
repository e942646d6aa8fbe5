"""Compares the published documents with what the events give, byte for byte.

A document is compared as of the pointer's event, or as of its own if that is later. A publication that was killed
leaves documents that are newer than the pointer. An older one isn't accepted, though it was true once.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from forge.domain.digest import canonical
from forge.domain.published_files import MODELS_FILE
from forge.errors import ProofRefused, UsageError
from forge.ledger.audit.report import AuditProblem, KeyUse
from forge.ledger.signatures.checkpoints import VERIFIER_FILE
from forge.projections import documents, leaderboard, snapshot, versions
from forge.projections.altered_tables import folded_up_to
from forge.projections.audit_views import VIEWS
from forge.projections.catch_up import Cursor
from forge.projections.fold import Position
from forge.projections.publish import PublishedPointer, read_pointer
from forge.proof.files import read
from forge.proof.note import parse_key
from forge.proof.publication import require_vouched

_DOCUMENTS = (documents.FILE, versions.FILE, leaderboard.FILE, MODELS_FILE)
"""Names of the published documents that are compared."""
_BYTES = "the bytes that the events give"
"""Words for what was expected of a published file."""
_REPLACE = "other bytes: forge ledger rebuild says what differed and replaces them"
"""Words for an altered file, with the command that replaces it."""


class PublishedDocuments:
    """The documents of a registry's folder, read before the ledger, which may then only be ahead of them.

    A document of which `told` names a wrong field isn't told a second time.
    """

    def __init__(self, folder: Path, told: Sequence[AuditProblem]) -> None:
        self.folder = folder
        self.tables_at = folded_up_to(folder)
        """Event up to which `history.db` is folded; None without one that a command takes as it is."""
        self._pointer = read_pointer(folder)
        self._verifier = _content(folder / VERIFIER_FILE)
        self._found: dict[str, bytes] = {}
        self._due: defaultdict[int, list[str]] = defaultdict(list)
        """Event -> names of the documents that must be as the events up to it give them."""
        for name in (*_DOCUMENTS, snapshot.POINTER):
            content = _content(folder / name)
            if content is not None and not any(one.what.startswith(f"published {name}:") for one in told):
                self._found[name] = content
                shown = self._pointer.position.seq if self._pointer else 0
                self._due[shown if name == snapshot.POINTER else max(shown, _place(content))].append(name)

    def is_due(self, seq: int) -> bool:
        """Return whether a document must be as the events up to `seq` give it."""
        return seq in self._due

    def problems(self, connection: sqlite3.Connection, head: Position, registry: Position) -> Iterator[AuditProblem]:
        """Yield a problem for each document that is due at `head` and has other bytes.

        `connection` has the tables as of `head`; `registry` is the newest event that changed the documents.
        """
        connection.execute(f"CREATE TEMP VIEW IF NOT EXISTS leaderboard AS {VIEWS['leaderboard']}")
        place, event_hash = registry.seq, registry.event_hash
        wanted = documents.render(
            connection, Cursor(head.ledger_id, head.seq, head.event_hash, place, event_hash, None)
        )
        for name in self._due[head.seq]:
            if name == snapshot.POINTER:
                yield from self._of_pointer(wanted)
            elif self._found[name] != wanted.get(name):
                yield AuditProblem(None, f"published {name}", _BYTES, _REPLACE)

    def _of_pointer(self, wanted: dict[str, bytes]) -> Iterator[AuditProblem]:
        found = orjson.loads(self._found[snapshot.POINTER])
        found.pop("note", None)
        if canonical(found) != wanted[snapshot.POINTER]:
            yield AuditProblem(None, f"published {snapshot.POINTER}", _BYTES, _REPLACE)
            return
        name = str(found["snapshot"])
        content = _content(self.folder / name)
        if content is not None and content != wanted[name]:
            yield AuditProblem(None, f"published {name}", _BYTES, _REPLACE)

    def unsigned(self, keys: Sequence[KeyUse]) -> Iterator[AuditProblem]:
        """Yield a problem if the published key, or the key of the pointer's note, wasn't in force then or later.

        So is a document that names no event: it was compared with none.
        """
        for name in self._due.get(0, ()):
            if name != snapshot.POINTER:
                yield AuditProblem(None, f"published {name}: ledger.seq", "the number of an event", "something else")
        if self._pointer is None:
            return
        seq = self._pointer.position.seq
        later = [
            one.key for one, after in zip(keys, [*keys[1:], None], strict=True) if after is None or after.seq > seq
        ]
        if self._verifier is not None and self._verifier.decode(errors="replace").strip() not in later:
            found = self._verifier.decode(errors="replace").strip()[:200]
            yield AuditProblem(None, f"published {VERIFIER_FILE}", " or ".join(later) or "no key", found)
        if self._pointer.note is not None and not any(_vouches(key, self._pointer) for key in later):
            yield AuditProblem(
                None, f"published {snapshot.POINTER}: note", "a note by the ledger's key over its content", "another"
            )


def _vouches(key: str, pointer: PublishedPointer) -> bool:
    at = pointer.position
    try:
        require_vouched(
            pointer.note,
            parse_key(key),
            ledger_id=at.ledger_id,
            seq=at.seq,
            event_hash=at.event_hash,
            sha256=pointer.sha256,
        )
    except ProofRefused:
        return False
    return True


def _place(content: bytes) -> int:
    """Return the event that a document names as the newest that changed it; 0 if it can't be read."""
    try:
        seq = orjson.loads(content)["ledger"]["seq"]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return 0
    return seq if type(seq) is int and seq > 0 else 0


def _content(path: Path) -> bytes | None:
    try:
        return read(path)
    except UsageError:  # also for a pipe, which would hold the check up, or a file without end
        return None
