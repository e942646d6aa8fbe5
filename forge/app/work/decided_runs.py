"""Counts the runs of a pipeline that are decided, while workers in other processes decide them."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from forge.app.workspace import Workspace, new_id, now
from forge.events import RunSealed
from forge.ledger.store import Ledger
from forge.ledger.watch import LedgerWatch

TOLD_EVERY_S = 10.0
"""Time between two reports of the count, in seconds. Chosen; an hour has 360 lines at most."""
LOOK_EVERY_S = 0.5
"""Time between two looks at the ledger, in seconds. A look at a ledger that hasn't changed costs some 20 us."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How many runs are decided, and how fast they were."""

    decided: int
    total: int
    before: int
    """Number of runs that were decided when the count began."""
    elapsed_s: float

    @property
    def per_minute(self) -> float:
        """Return the decisions a minute since the count began."""
        return 60 * (self.decided - self.before) / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Return the time in which the rest is decided at this rate, in seconds; None while there is no rate."""
        return 60 * (self.total - self.decided) / self.per_minute if self.per_minute > 0 else None


@contextmanager
def counting(workspace: Workspace, run_ids: Collection[str], tell: Callable[[Pace], None]) -> Iterator[None]:
    """Tell how many of these runs are decided, whenever that changes, until the block ends; at its end tell it again.

    A run is decided when its seal is recorded. Only the ledger is asked.
    """
    over = threading.Event()
    counted = _Count(workspace, frozenset(run_ids), tell)
    thread = threading.Thread(target=counted.follow, args=(over,), name="pace", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Count:
    """The count of one pipeline."""

    def __init__(self, workspace: Workspace, run_ids: frozenset[str], tell: Callable[[Pace], None]) -> None:
        self._path, self._run_ids, self._tell = workspace.ledger.path, run_ids, tell
        self._seq, self._decided = 0, set[str]()
        self._began_s = time.monotonic()
        self._look(workspace.ledger)
        self._before = len(self._decided)

    def follow(self, over: threading.Event) -> None:
        """Look at the ledger until the work is over."""
        watch, told, told_s = LedgerWatch(self._path), self._before, self._began_s
        try:
            with Ledger.open(self._path, now=now, new_id=new_id, read_only=True) as ledger:
                while not over.wait(LOOK_EVERY_S):
                    if watch.changed():
                        self._look(ledger)
                    if len(self._decided) > told and time.monotonic() - told_s >= TOLD_EVERY_S:
                        told, told_s = len(self._decided), time.monotonic()
                        self._tell(self._pace())
                self._look(ledger)
        finally:
            watch.close()
        self._tell(self._pace())

    def _look(self, ledger: Ledger) -> None:
        for recorded in ledger.read(after_seq=self._seq, types=(RunSealed.TYPE,)):
            self._seq = recorded.seq
            if isinstance(recorded.event, RunSealed) and recorded.event.run_id in self._run_ids:
                self._decided.add(recorded.event.run_id)

    def _pace(self) -> Pace:
        return Pace(
            decided=len(self._decided),
            total=len(self._run_ids),
            before=self._before,
            elapsed_s=time.monotonic() - self._began_s,
        )
