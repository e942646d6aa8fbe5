"""A worker: waits for requests of work, and runs the phases of one run after another.

Between two runs a worker holds no workspace open, so that it never keeps others from repairing what a killed process
left. Several workers may serve one workspace: each takes a run by a lock, and another worker passes over it.
"""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from forge.app.phases import phases
from forge.app.runs.states import finish_phase, task_of
from forge.app.stored.run_summary import run_summary
from forge.app.work.ends_closed_runs import POLL_S, until_closed
from forge.app.work.lost_jobs import lost_job
from forge.app.work.requests import open_work
from forge.app.workspace import Workspace
from forge.domain.environment import GpuFacts
from forge.errors import EnvironmentUnfit, ForgeError
from forge.lab.job import Progress
from forge.ledger.runs.taken import taken
from forge.ledger.watch import LedgerWatch
from forge.pipeline.job import runs_on
from forge.projections import runs
from forge.projections.runs import RunsState, RunState
from forge.sandbox.calling_off import CalledOff

LOCKED_S = 1.0
"""Time after which runs that other workers had are tried again, in seconds: a worker that was killed changes nothing
in the ledger."""

MOST_PREFERRED = 8
"""Number of runs in a row that a worker takes before the oldest one. Chosen; more save more compilations, and let the
oldest wait longer."""

Summary = dict[str, object]
Baselines = tuple[object, ...]
"""Key of what torch.compile makes for the baselines of a task: runs with the same key need it once."""
Opened = Callable[[], AbstractContextManager[Workspace]]


@dataclass
class Worker:
    """Serves one workspace with one device: the chosen GPU, or the processor."""

    opened: Opened
    """Function that opens the workspace, and repairs it after a crash."""
    progress: Callable[[str], Progress]
    """Function from a run's id to the callback that shows the run's progress."""
    gpu: GpuFacts | None = None
    """GPU that this worker runs jobs on; None for the processor."""
    _state: RunsState = runs.EMPTY
    _seq: int = 0
    _ledger_id: str = ""
    _refused: set[int] = field(default_factory=set)
    """Requests that this worker couldn't serve; it leaves them to others."""
    _compiled: set[Baselines] = field(default_factory=set)
    """Baselines that this worker's place has compiled. They are there until the worker ends."""
    _preferred: int = 0
    """Number of runs taken before the oldest one since that was taken last."""

    def serve(self) -> Generator[Summary, None, None]:
        """Yield the summary of each run that was worked on; wait for the next without end."""
        with self.opened() as workspace:
            watch = LedgerWatch(workspace.ledger.path)
        locked, tried = False, 0.0
        try:
            while True:
                if watch.changed() or (locked and time.monotonic() - tried >= LOCKED_S):
                    locked = yield from self.work_off()
                    tried = time.monotonic()
                else:
                    time.sleep(POLL_S)
        finally:
            watch.close()

    def work_off(self) -> Generator[Summary, None, bool]:
        """Yield the summary of each run that was worked on, until no request is left for this worker.

        The generator's value says whether other workers have the rest.
        """
        with self.opened() as workspace:
            passed_over: set[int] = set()
            while (run := self._next(workspace, passed_over)) is not None:
                assert run.request is not None
                with taken(workspace.directory(run.run_id)) as is_ours:
                    if not is_ours:
                        passed_over.add(run.request.seq)
                    elif _still_asked(workspace, run):
                        yield self._work(workspace, run.run_id, run.request.seq)
        return bool(passed_over)

    def _next(self, workspace: Workspace, passed_over: set[int]) -> RunState | None:
        """Return the run to work on next: of those that this worker may serve and that no other worker has.

        A run whose baselines are compiled here comes first, otherwise the oldest request. No worker waits for a run.
        """
        served = [run for run in open_work(self._folded(workspace)) if self._serves(run, passed_over)]
        if not served:
            return None
        chosen = served[0]
        if self._preferred < MOST_PREFERRED:
            chosen = next((run for run in served if _baselines_of(run) in self._compiled), chosen)
        self._preferred = 0 if chosen is served[0] else self._preferred + 1
        return chosen

    def _serves(self, run: RunState, passed_over: set[int]) -> bool:
        assert run.request is not None
        return runs_on(task_of(run), self.gpu) and run.request.seq not in self._refused | passed_over

    def _folded(self, workspace: Workspace) -> RunsState:
        """Return the state of every run. Only events since the last call are read, unless the ledger is another."""
        ledger = workspace.ledger
        if ledger.ledger_id != self._ledger_id or ledger.head.seq < self._seq:
            self._state, self._seq, self._ledger_id = runs.EMPTY, 0, ledger.ledger_id
        events = list(ledger.read(after_seq=self._seq))
        if events:
            self._state, self._seq = runs.fold(self._state, events), events[-1].seq
        return self._state

    def _work(self, workspace: Workspace, run_id: str, request_seq: int) -> Summary:
        """Run a run's phases while its request stands. What this machine can't do is left to another worker.

        A run that is closed meanwhile is let go at once.
        """
        try:
            run = finish_phase(workspace, workspace.find_run(run_id))
            with suppress(CalledOff), until_closed(workspace, run_id):
                while run.request is not None and run.request.seq not in self._refused:
                    _step(workspace, run, self.progress(run_id))
                    if run.state == "verified":  # it was timed beside its baselines
                        self._compiled.add(_baselines_of(run))
                    run = finish_phase(workspace, workspace.find_run(run_id))
            run = workspace.find_run(run_id)
        except ForgeError as error:
            self._refused.add(request_seq)
            return run_summary(workspace.find_run(run_id)) | {"error": {"code": error.code, "message": error.message}}
        lost = lost_job(run)
        fault = lost.event.detail if lost is not None and lost.seq > request_seq else None
        return run_summary(run) | {"error": fault and {"code": EnvironmentUnfit.code, "message": fault}}


def _still_asked(workspace: Workspace, seen: RunState) -> bool:
    """Return whether a run's request stands now that the run is taken: another worker may have answered it before."""
    now = workspace.find_run(seen.run_id).request
    return now is not None and seen.request is not None and now.seq == seen.request.seq


def _baselines_of(run: RunState) -> Baselines:
    task = task_of(run)
    return (task.op, task.dtype, task.target.gpu, tuple(sorted(task.shape.items())))


def _step(workspace: Workspace, run: RunState, progress: Progress) -> None:
    """Run the next phase of a run."""
    match run.state:
        case "candidate_ready":
            phases.verify_candidate(workspace, run, progress=progress)
        case "verified":
            phases.benchmark_candidate(workspace, run, progress=progress)
        case "benchmarked":
            phases.promote_candidate(workspace, run)
        case _:
            raise AssertionError(f"no request stands for a run that is {run.state}")
