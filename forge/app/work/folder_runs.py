"""Chooses the run of each folder of a pipeline: the named run, an earlier run of the same bytes, or a new one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forge.app.runs.states import ENDS, task_of
from forge.app.stored.own_operation import make_task_known
from forge.app.stored.run_summary import next_of
from forge.app.tasks.create import open_run
from forge.app.tasks.known_tasks import find_task
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.task import Task
from forge.errors import RunNotFound, UsageError
from forge.events import CandidateRejected, CandidateSubmitted, Event, TaskCreated
from forge.pipeline.submit import submit
from forge.projections.run_lookup import NEWEST, NUMBERED, STREAM
from forge.projections.runs import RunState

Origin = Literal["named", "opened", "taken up", "decided before"]
UNREAD = "another-run"
"""Run id for a submission that is computed and never recorded; a candidate's digest doesn't depend on it."""


@dataclass(frozen=True, kw_only=True)
class PipelineTarget:
    """The task of a pipeline, and the run if the user named one."""

    task: Task
    run: RunState | None

    @property
    def task_id(self) -> str:
        """Return the task's id."""
        return self.task.task_id


@dataclass(frozen=True, kw_only=True)
class FolderRun:
    """A folder with its run, and how the run was found."""

    folder: Path
    run_id: str
    origin: Origin


def find_target(workspace: Workspace, name: str) -> PipelineTarget:
    """Return the run or the task that `name` means: an id, its unique beginning, `last`, `last-N` or `r12`.

    Raises RunNotFound if nothing has this name, or several have.
    """
    if NEWEST.fullmatch(name) or NUMBERED.fullmatch(name):
        return _run_target(workspace.find_run(name))
    runs = [stream.removeprefix(STREAM) for stream in workspace.ledger.streams(STREAM + name)] if name else []
    created = (recorded.event for recorded in workspace.ledger.read(types=(TaskCreated.TYPE,)))
    tasks = [one.task_id for one in created if isinstance(one, TaskCreated) and name and one.task_id.startswith(name)]
    if name in runs or (runs and not tasks):
        return _run_target(workspace.find_run(name))
    if name in tasks or (len(tasks) == 1 and not runs):
        return PipelineTarget(task=find_task(workspace, name).task, run=None)
    shown = ", ".join(sorted((*runs, *tasks))[:3])
    found = f"{len(runs)} runs and {len(tasks)} tasks ({shown})" if runs or tasks else "no run and no task"
    raise RunNotFound(
        f"{found} by the name {name!r}: expected an id, its unique beginning, `last`, `last-N` or `r12`",
        hint="forge task list",
    )


def _run_target(run: RunState) -> PipelineTarget:
    return PipelineTarget(task=task_of(run), run=run)


def require_folders(folders: Sequence[Path]) -> None:
    """Raise UsageError unless each path is a folder, and no folder is named twice."""
    seen: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            expected = ", ".join(REQUIRED_FILES)
            raise UsageError(f"{str(folder)!r} is not a folder: expected one with {expected}")
        earlier = seen.setdefault(folder.resolve(), folder)
        if earlier is not folder:
            raise UsageError(f"{str(folder)!r} is {str(earlier)!r} again: expected each folder once")


def choose_run(
    workspace: Workspace, target: PipelineTarget, folder: Path, *, author: str | None, alone: bool, resume: bool
) -> FolderRun:
    """Return the run in which a folder is asked; open one if there is none.

    A named run is used if the folder is `alone`, or if the run still waits for its first candidate. With `resume`,
    an earlier run of the same bytes comes first.
    """
    named = None if target.run is None else workspace.find_run(target.run.run_id)
    if resume:
        earlier = _earlier_run(workspace, target.task, folder, author=author)
        if earlier is not None:
            origin: Origin = "decided before" if _is_decided(earlier) else "taken up"
            return FolderRun(folder=folder, run_id=earlier.run_id, origin=origin)
    if named is not None and ((alone and not resume) or _waits(named)):
        return FolderRun(folder=folder, run_id=named.run_id, origin="named")
    make_task_known(workspace.blobs, target.task)
    opened = open_run(workspace, target.task_id, command="pipeline")
    return FolderRun(folder=folder, run_id=opened.run_id, origin="opened")


def _waits(run: RunState) -> bool:
    """Return whether no folder was handed in to the run."""
    return run.state in ("planned", "prompt_ready") and run.rejection is None


def _is_decided(run: RunState) -> bool:
    """Return whether the bytes were refused at submission, or the run came to its end."""
    return run.state in ENDS or _refused_at_submission(run)


def _refused_at_submission(run: RunState) -> bool:
    return run.submitted is None and run.rejection is not None


def _earlier_run(workspace: Workspace, task: Task, folder: Path, *, author: str | None) -> RunState | None:
    """Return the newest run of the task to which the folder's bytes were handed in, and which can answer for them.

    An aborted run, and one whose candidate must be timed in another run, can't. If an author is given, it counts too.
    """
    handed_in = submit(
        folder, task=task, run_id=UNREAD, untrusted_author=author or workspace.actor, judged_before=lambda _: None
    ).events[0]
    assert isinstance(handed_in, CandidateSubmitted | CandidateRejected)
    types = (CandidateSubmitted.TYPE, CandidateRejected.TYPE)
    for recorded in reversed(list(workspace.ledger.read(stream=handed_in.stream(), types=types))):
        event = recorded.event
        assert isinstance(event, CandidateSubmitted | CandidateRejected)
        if event.task_id == task.task_id:
            run = workspace.find_run(event.run_id)
            if _answers(run, handed_in, with_author=author is not None):
                return run
    return None


def _answers(run: RunState, handed_in: CandidateSubmitted | CandidateRejected, *, with_author: bool) -> bool:
    if run.submitted is None:
        return (
            run.state != "aborted"
            and run.rejection is not None
            and run.rejection.event.candidate == handed_in.candidate
        )
    submitted = run.submitted.event
    if submitted.candidate != handed_in.candidate:
        return False
    if with_author and submitted.author != getattr(handed_in, "author", None):
        return False
    return run.state in ENDS or (next_of(run) or "").endswith(f" {run.run_id}")


def recorded_phases(run: RunState) -> dict[str, Event]:
    """Return the phases that a run has an answer of -> the latest event that answers each."""
    if _refused_at_submission(run):
        assert run.rejection is not None
        return {"submit": run.rejection.event}
    found = {
        "submit": run.submitted,
        "verify": run.rejection if run.state == "rejected" else run.verified,
        "bench": run.benchmark or run.failure,
        "promote": run.promotion,
    }
    return {name: recorded.event for name, recorded in found.items() if recorded is not None}
