"""Ends the work on a run that was closed while a worker judges it: its guests are killed, and nothing is recorded."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.app.workspace import Workspace, new_id, now
from forge.events import RunAborted
from forge.ledger.store import Ledger
from forge.ledger.watch import LedgerWatch
from forge.sandbox import calling_off

POLL_S = 0.05
"""Time between two looks at the ledger, in seconds. A person takes 250 ms for at once, and a request is
seen in a fraction of that. A closed run's guests may live for two seconds at most. One look costs some 20 us."""


@contextmanager
def until_closed(workspace: Workspace, run_id: str) -> Iterator[None]:
    """Call this process's work off as soon as the run is closed by another process; then the block raises CalledOff.

    Only what the executor does is called off. A phase that is being recorded is recorded in full.
    """
    over = threading.Event()
    watching = threading.Thread(
        target=_watch, args=(workspace.ledger.path, run_id, over), name=f"watch-{run_id}", daemon=True
    )
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
        calling_off.resume()


def _watch(path: Path, run_id: str, over: threading.Event) -> None:
    watch = LedgerWatch(path)
    try:
        with Ledger.open(path, now=now, new_id=new_id, read_only=True) as ledger:
            while not over.wait(POLL_S):
                if watch.changed() and any(ledger.read(stream=f"run:{run_id}", types=(RunAborted.TYPE,))):
                    calling_off.call_off()
                    return
    finally:
        watch.close()
