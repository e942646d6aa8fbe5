"""The page on the registry that ships: what every candidate of its ledger came to, from the events alone."""

from collections.abc import Iterator
from pathlib import Path

from forge.app.workspace import Workspace
from forge.claims.named import baseline_name
from forge.domain.evidence import WorkloadTiming
from forge.domain.task import Task
from forge.domain.verdict import UNDECIDED
from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateRejected, KernelPromoted, TaskCreated
from forge.pipeline.rule import baseline_used
from forge.pipeline.samples import protocol_of

HOME = Path(__file__).resolve().parents[1]
HEADER = (
    "operation",
    "language",
    "type",
    "shape",
    "kernel",
    "best other",
    "ratio on the H200, 95 % interval",
    "of the floor",
    "came to",
    "protocol",
    "event",
)


def introduction() -> Iterator[str]:
    """What the table shows."""
    yield "`kernel_registry.db`, `forge_runs/` and `kernel_registry/` at the project's top level are a workspace."
    yield "Its ledger holds what became of the kernels in `examples/h200/` on an NVIDIA H200, as"
    yield "`benchmarks/registry.py` took them through the pipeline: refusals, baselines that stand and measurements"
    yield "without a verdict included."
    yield "`forge ledger verify --full` checks it, `forge kernel history KERNEL` shows what a promotion stands on."
    yield ""
    yield "Times are medians per call by graph replay; the best other is the fastest of eager, torch.compile, the"
    yield "vendor's operator and the kernel promoted before. A promoted kernel's numbers are those of its"
    yield "confirmation, on fresh data."
    yield "A baseline stands where the kernel doesn't reach the least speedup that its task asks for: near the floor"
    yield "there is nothing to win."
    yield "A window of `graph_replay.v2` waited a few microseconds for what was written before it, on every side"
    yield "alike; one of `graph_replay.v3` doesn't ([windows](../measurement.md#windows-of-replays))."
    yield ""


def rows() -> Iterator[tuple[str, ...]]:
    """One row for each candidate's last word."""
    with Workspace.open(HOME, read_only=True) as workspace:
        yield from _rows(workspace)


def _rows(workspace: Workspace) -> Iterator[tuple[str, ...]]:
    history = list(workspace.ledger.read())
    events = [recorded.event for recorded in history]
    tasks = {event.task_id: event.task for event in events if isinstance(event, TaskCreated)}
    promoted = {event.run_id: event.kernel_id for event in events if isinstance(event, KernelPromoted)}
    last: dict[str, tuple[int, BenchmarkRecorded | BenchmarkFailed | CandidateRejected]] = {}
    for recorded in history:
        if isinstance(recorded.event, BenchmarkRecorded | BenchmarkFailed | CandidateRejected):
            last[recorded.event.task_id] = (recorded.seq, recorded.event)
    for task_id in sorted(last, key=lambda one: (tasks[one].op, tasks[one].language, one)):
        seq, event = last[task_id]
        yield (*_row(tasks[task_id], event, promoted), _protocol(workspace, event), f"event {seq}")


def _row(
    task: Task, event: BenchmarkRecorded | BenchmarkFailed | CandidateRejected, promoted: dict[str, str]
) -> tuple[str, ...]:
    shape = ", ".join(f"{axis} {size}" for axis, size in task.shape.items())
    named = (task.op, task.language, task.dtype, shape)
    if isinstance(event, CandidateRejected):
        return (*named, "", "", "", "", f"refused: {event.reason.code}")
    came_to = f"`{promoted[event.run_id]}`" if event.run_id in promoted else _ended(event)
    undecided = isinstance(event, BenchmarkFailed) and event.reason.code in UNDECIDED
    if undecided or not event.workloads:  # numbers without a verdict say nothing
        return (*named, "", "", "", "", came_to)
    return (*named, *_numbers(task, event.workloads[0]), came_to)


def _protocol(workspace: Workspace, event: BenchmarkRecorded | BenchmarkFailed | CandidateRejected) -> str:
    """What the samples were taken by."""
    if isinstance(event, CandidateRejected) or not event.workloads:
        return ""
    return protocol_of(workspace.blobs.get(event.workloads[0].samples_sha256)) or ""


def _ended(event: BenchmarkRecorded | BenchmarkFailed) -> str:
    if isinstance(event, BenchmarkRecorded):
        return "not promoted"
    return "baseline stands" if event.reason.code == "TOO_SLOW" else f"no verdict: {event.reason.code}"


def _numbers(task: Task, timing: WorkloadTiming) -> tuple[str, ...]:
    kind = baseline_used(task, timing)
    shown = timing.confirmation or timing
    against = next(one for one in shown.speedups if one.baseline == kind)
    found = against.interval
    return (
        f"{shown.candidate.median_ns / 1000:.2f} us",
        f"{baseline_name(kind)} {against.baseline_median_ns / 1000:.2f} us",
        f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})",
        f"{timing.floor_ns / shown.candidate.median_ns:.0%}",
    )
