"""Scores an author over a suite of tasks: correctness rate, fast_p and cost. Every task is in the denominator."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from forge.app.sessions.report import FAST
from forge.app.sessions.view import used
from forge.app.solve.children import Work, attempts_of
from forge.app.tasks.create import create_task
from forge.app.tasks.references import freeze_reference, infer_reference, problem_files
from forge.app.user.user_paths import read_regular
from forge.app.workspace import Workspace
from forge.domain.budget import Amounts
from forge.errors import ForgeError, IntegrityError, UsageError
from forge.lab.job import Progress
from forge.pipeline.create import TaskRequest

Data = dict[str, object]
SUITE_BYTES = 1 << 20
"""Size of a suite's list in bytes, at most. A thousand entries take about 100 KiB."""
MOST_ENTRIES = 1000
"""Number of tasks of a suite, at most. Chosen; each entry is looked up in the ledger."""


@dataclass(frozen=True)
class Entry:
    """One task of a suite: an operation of the catalogue, or a file with a reference."""

    name: str
    op: str = ""
    shape: str = ""
    file: Path | None = None


@dataclass(frozen=True)
class ScoredTask:
    """What an author achieved on one task."""

    name: str
    task_id: str | None
    session_id: str | None
    candidates: int
    correct: bool
    """Whether one of its candidates passed every gate."""
    ratio: float
    """Highest speedup of a correct candidate over the task's first baseline; 0 if none was measured."""
    kernels: tuple[str, ...]
    used: Amounts
    failure: str | None
    """Reason why there was no session. The task counts as failed then. None: there was one."""
    simulated: bool = False
    """Whether an interpreter stood in for the target: then `correct` holds for that alone, and there is no time."""


def read_suite(path: Path) -> list[Entry]:
    """Return the tasks of a suite: a folder of reference files, or a JSON list of operations with their shapes.

    Raises UsageError.
    """
    if path.suffix != ".json":
        return [Entry(name=one.stem, file=one) for one in problem_files(path)]
    try:
        listed = json.loads(read_regular(path, limit_bytes=SUITE_BYTES))
        entries = [Entry(name=f"{one['op']} {one['shape']}", op=one["op"], shape=one["shape"]) for one in listed]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        expected = 'expected a JSON list of objects such as {"op": "rmsnorm", "shape": "batch=16,hidden_size=4096"}'
        raise UsageError(f"the suite {str(path)!r} can't be read ({type(error).__name__}): {expected}") from error
    fit = all(isinstance(one.op, str) and isinstance(one.shape, str) for one in entries)
    if not (fit and 1 <= len(entries) <= MOST_ENTRIES):
        raise UsageError(
            f"the suite {str(path)!r} has {len(entries)} entries: expected 1 to {MOST_ENTRIES}, each with its op and "
            "shape as text"
        )
    return entries


def score(
    workspace: Workspace, suite: Sequence[Entry], request: TaskRequest, work: Work, *, progress: Progress
) -> Iterator[ScoredTask]:
    """Let the author work on each task of the suite in turn, with an equal share of the budget; yield its result."""
    for one in suite:
        progress(one.name)
        try:
            task_id = _task(workspace, one, request)
            state = work(task_id, len(suite))
        except IntegrityError:
            raise
        except ForgeError as error:  # a task that can't be opened is a failure of the suite, not its end
            yield ScoredTask(one.name, None, None, 0, False, 0.0, (), Amounts(), error.message)
            continue
        tried = list(attempts_of(workspace, state))
        ratios = [answered.speedup.ratio for answered in state.answers() if answered.speedup is not None]
        right = any(attempt.is_right for attempt in tried)
        yield ScoredTask(
            name=one.name,
            task_id=task_id,
            session_id=state.session_id,
            candidates=len(tried),
            correct=right,
            ratio=max(ratios, default=0.0) if right else 0.0,
            kernels=tuple(found.kernel_id for found in state.answers() if found.kernel_id is not None),
            used=used(state),
            failure=None,
            simulated=any(one.judged.feedback is not None and one.judged.feedback.simulated for one in tried),
        )


def _task(workspace: Workspace, entry: Entry, request: TaskRequest) -> str:
    if entry.file is not None:
        return freeze_reference(
            workspace, infer_reference(workspace, entry.file, request, progress=lambda _: None)
        ).task_id
    asked = TaskRequest(
        op=entry.op, language=request.language, gpu=request.gpu, dtype=request.dtype, shape=entry.shape
    )
    return create_task(workspace, asked).task_id


def summed(rows: Sequence[ScoredTask]) -> Data:
    """Return the score of a suite: shares of all its tasks, and what that cost for each promoted kernel."""
    count, spent = len(rows), sum((one.used for one in rows), Amounts())
    promoted = sum(len(one.kernels) for one in rows)
    return {
        "tasks": count,
        "candidates": sum(one.candidates for one in rows),
        "correctness_rate": sum(one.correct for one in rows) / count,
        **{f"fast_{limit:g}": sum(one.ratio > limit for one in rows) / count for limit in FAST},
        "promoted": promoted,
        "simulated": sum(one.simulated for one in rows),
        "used": spent.model_dump(mode="json"),
        "per_promoted_kernel": {name: amount / promoted for name, amount in spent.items()} if promoted else None,
    }
