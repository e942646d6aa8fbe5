"""Measures how soon the processes of seven candidates are gone, once the eighth one has passed every gate.

Usage: python benchmarks/early_win.py [--branches 8] > early_win.json

A session hands in one right kernel and others that never end, in one step that ends with the first right one. Each is
judged by a worker of its own (`forge work`), in the real sandbox. A look each 10 ms at /proc says which workers have
guests. The result has the time from the winner's recorded verdict to the last guest of the others in seconds, and
what was recorded and settled of them.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forge.app.sessions.finding import find_session
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.tasks.create import create_task
from forge.app.workspace import Workspace
from forge.authors.folders import FolderAuthor
from forge.domain.authoring import BudgetLeft, Draft, Finished, LogEntry, Step, Submit
from forge.domain.budget import Amounts
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.session import SessionTerms
from forge.events import CandidateVerified
from forge.ledger.runs.taken import is_taken
from forge.ledger.watch import LedgerWatch
from forge.pipeline.create import TaskRequest

HONEST = Path(__file__).parents[1] / "examples" / "honest_cpp"
ENDLESS = "import time\n\nwhile True:\n    time.sleep(1)\n\n\ndef fused_add_rmsnorm("
ROOM = Amounts(candidates=16, wall_ms=3_600_000_000, device_ms=3_600_000_000)
LOOK_S = 0.01
AFTERWARDS_S = 6.0
"""Time in seconds for which others are looked at after the winner's verdict."""


@dataclass(frozen=True)
class AllAtOnce(FolderAuthor):
    """Hands all of its drafts in as one step that ends with the first right one."""

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Return that step, and then the end."""
        del seed, left
        if log:
            return Finished(reason="finalists_judged", detail="one step was wanted")
        return Submit(drafts=self.drafts, first_right=True)


@dataclass
class Watcher:
    """Notes when the winner's verdict was recorded, and until when others had guests."""

    home: Path
    workers: list[int]
    over: threading.Event = field(default_factory=threading.Event)
    verified_s: float | None = None
    winner: str = ""
    last_guest_s: float = 0.0
    most: int = 0
    """Number of workers that had guests at once, at most."""

    def run(self) -> None:
        """Look until it is over."""
        with Workspace.open(self.home, read_only=True) as workspace:
            watch = LedgerWatch(workspace.ledger.path)
            while not self.over.wait(LOOK_S):
                judging = [one for one in self.workers if guests_of(one)]
                self.most = max(self.most, len(judging))
                if self.verified_s is None and watch.changed():
                    for one in workspace.ledger.read(types=(CandidateVerified.TYPE,)):
                        assert isinstance(one.event, CandidateVerified)
                        self.verified_s, self.winner = time.monotonic(), one.event.run_id
                elif self.verified_s is not None and len(judging) > 1:  # the winner's worker goes on with its time
                    self.last_guest_s = time.monotonic()
                if self.verified_s is not None and time.monotonic() > self.verified_s + AFTERWARDS_S:
                    os.kill(os.getpid(), signal.SIGINT)  # the winner's time takes minutes, and says nothing here
                    break
            watch.close()


def guests_of(worker: int) -> set[int]:
    """Return the processes below a worker that have a process namespace of their own."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(place.name))
    found, left, own = set(), list(children.get(worker, [])), Path("/proc/self/ns/pid").readlink()
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        with suppress(OSError):
            if Path(f"/proc/{pid}/ns/pid").readlink() != own:
                found.add(pid)
    return found


@contextmanager
def workers(home: Path, count: int) -> Iterator[list[int]]:
    """Start workers, and end them with the block."""
    command = [sys.executable, "-m", "forge", "work", "--home", str(home)]
    started = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield [one.pid for one in started]
    finally:
        for one in started:
            one.send_signal(signal.SIGINT)
        for one in started:
            with suppress(subprocess.TimeoutExpired):
                one.wait(20)
            one.kill()


def drafts(count: int) -> tuple[Draft, ...]:
    """Return kernels that never end, and last one that is right."""
    files = {name: (HONEST / name).read_text() for name in REQUIRED_FILES}
    endless = [
        files | {"kernel.py": f"# {place}\n" + files["kernel.py"].replace("def fused_add_rmsnorm(", ENDLESS)}
        for place in range(count - 1)
    ]
    return tuple(Draft(files=one, hypothesis=f"draft {place}") for place, one in enumerate([*endless, files]))


def measured(home: Path, branches: int) -> dict[str, Any]:
    """Work the session off, and return what was seen."""
    with Workspace.create(home, origin="benchmark") as workspace:
        request = TaskRequest(
            op="fused_add_rmsnorm", language="cpp", gpu="cpu", dtype="fp32", shape="batch=4,hidden_size=256"
        )
        task = create_task(workspace, request).task_id
        author = AllAtOnce(drafts(branches))
        terms = SessionTerms(workers=branches, repeats=0)
        session_id = open_session(workspace, author, SessionRequest(task=task, seed=1, budget=ROOM, terms=terms))
        with workers(home, branches) as pids:
            watcher = Watcher(home, pids)
            looking = threading.Thread(target=watcher.run)
            looking.start()
            with suppress(KeyboardInterrupt):
                work_off(workspace, session_id, author, Means(progress=lambda _: None))
            watcher.over.set()
            looking.join()
        requests = find_session(workspace, session_id).rounds[0].requests
        runs = {str(one.reserved.for_run): workspace.find_run(str(one.reserved.for_run)) for one in requests}
        others = [run for name, run in runs.items() if name != watcher.winner]
        assert watcher.verified_s is not None, "no candidate passed every gate"
        return {
            "branches": branches,
            "judged_at_once": watcher.most,
            "others_gone_after_s": round(max(0.0, watcher.last_guest_s - watcher.verified_s), 3),
            "look_s": LOOK_S,
            "settled_others": sum(
                one.settled is not None for one in requests if one.reserved.for_run != watcher.winner
            ),
            "states_of_others": sorted({run.state for run in others}),
            "refused_others": sum(run.rejection is not None for run in others),
            "taken_afterwards": sum(is_taken(workspace.directory(run.run_id)) for run in others),
            "processors": os.cpu_count(),
        }


def main() -> int:
    """Measure, and print one document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--branches", type=int, default=8)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder) / "home", chosen.branches), indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
