"""A view: one thread's read-only workspace, kept open between questions and opened again if it was replaced."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from forge.app.access.tokens import READER, Caller, find_caller
from forge.app.desk.permits import DECIDED
from forge.app.workspace import Workspace
from forge.errors import TokenRefused
from forge.ledger.watch import LedgerWatch
from forge.ledger.writing import Head

MOST_KEPT = 64
"""Number of answers that take long and are kept. Chosen; each holds a document in memory."""


@dataclass
class View:
    """Reads one workspace. Only the thread that asks first may ask."""

    home: Path
    _workspace: Workspace | None = None
    _watch: LedgerWatch | None = None
    _inode: int = 0
    _head: Head = field(default_factory=lambda: Head(0, ""))
    _kept: dict[str, tuple[tuple[int, ...], dict[str, object]]] = field(default_factory=dict)
    """Answers that take long, with the newest event of each type that they depend on."""

    @property
    def workspace(self) -> Workspace:
        """Return the open workspace; `refresh` opens it."""
        assert self._workspace is not None, "refresh comes first"
        return self._workspace

    @property
    def published(self) -> Workspace:
        """Return the workspace for answers over the whole history: without the figures of undecided runs."""
        return replace(self.workspace, decided=DECIDED)

    @property
    def head(self) -> Head:
        """Return the last event at the last refresh."""
        return self._head

    @property
    def stand(self) -> str:
        """Return a text that differs for each state of the ledger."""
        return f"{self.workspace.ledger.ledger_id}-{self._head.seq}-{self._head.event_hash[:16]}"

    def refresh(self) -> None:
        """Look whether the ledger has changed, and open the workspace if that is needed.

        Raises WorkspaceNotFound while there is none, for example in the moment of a restore, and LedgerCorrupt.
        """
        if self._workspace is None or not self._stands():
            self.close()
            self._workspace = Workspace.open(self.home, read_only=True)
            self._watch = LedgerWatch(self._workspace.ledger.path)
            self._inode = self._workspace.ledger.path.stat().st_ino
        assert self._watch is not None
        if self._watch.changed() or not self._head.seq:
            self._head = self._workspace.ledger.head

    def kept(self, name: str, types: tuple[str, ...], ask: Callable[[], dict[str, object]]) -> dict[str, object]:
        """Return an answer that depends on events of these types alone; it is asked for again after a new one."""
        newest = [self.workspace.ledger.newest(one) for one in types]
        stand = tuple(0 if one is None else one.seq for one in newest)
        had = self._kept.get(name)
        if had is None or had[0] != stand:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            had = self._kept[name] = stand, ask()
        return had[1]

    def caller(self, untrusted_token: str | None) -> Caller:
        """Return who asks; raise TokenRefused for a token that isn't accepted here."""
        if untrusted_token is None:
            return READER
        found = find_caller(self.workspace, untrusted_token)
        if found is None:
            raise TokenRefused(
                "this token is unknown here, revoked or expired: expected one of this workspace",
                hint="forge token list",
            )
        return found

    def close(self) -> None:
        """Close the workspace."""
        if self._watch is not None:
            self._watch.close()
        if self._workspace is not None:
            self._workspace.ledger.close()
        self._workspace, self._watch, self._head = None, None, Head(0, "")
        self._kept.clear()

    def _stands(self) -> bool:
        """Return whether the ledger is still the file that was opened."""
        assert self._workspace is not None
        try:
            return self._workspace.ledger.path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False
