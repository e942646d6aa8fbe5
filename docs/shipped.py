"""The page on the registry that ships: what every candidate of its ledger came to, from the events alone."""

from collections.abc import Iterator
from pathlib import Path

from forge.app.home import LEDGER_FILE
from forge.app.workspace import Workspace
from forge.claims.named import baseline_name
from forge.domain.evidence import WorkloadTiming
from forge.domain.task import Task
from forge.domain.verdict import UNDECIDED
from forge.events import (
    BenchmarkErrored,
    BenchmarkFailed,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateVerified,
    Event,
    KernelPromoted,
    Recorded,
    TaskCreated,
)
from forge.ledger.audit.history import audit
from forge.pipeline.promotion_rule import baseline_used
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
    yield "This page lists the results in the ledger that ships with Forge."
    yield "`kernel_registry.db`, `forge_runs/` and `kernel_registry/` at the project's top level are a workspace."
    yield "`benchmarks/registry.py` took the kernels in `examples/h200/` through the pipeline on an NVIDIA H200,"
    yield "and the ledger holds what was decided."
    yield "A row is the result of one task's newest benchmark or refusal, baselines that stand included."
    yield "Results without a row are [listed below](#what-the-table-leaves-out)."
    yield "`forge ledger verify --full` computes every number again from its samples;"
    yield "`forge kernel history KERNEL` shows the evidence of a promotion."
    yield ""
    yield from _keys()
    yield ""
    yield "Times are medians per call by graph replay; the best other is the fastest of eager, torch.compile, the"
    yield "vendor's operator and the incumbent. A promoted kernel's numbers are those of its"
    yield "confirmation, on fresh data."
    yield "A baseline stands if the kernel doesn't reach the least speedup that its task asks for: near the floor"
    yield "there is nothing to gain."
    yield from coverage()
    yield "A window of `graph_replay.v2` waited a few microseconds for bytes that were written before it, on all"
    yield "sides alike; a window of `graph_replay.v3` doesn't ([windows](../measurement.md#windows-of-replays))."
    yield ""


def _keys() -> Iterator[str]:
    """Which keys signed the ledger, and which of them no earlier key named."""
    uses = audit(HOME / LEDGER_FILE).keys
    unvouched = [one for one in uses if not one.vouched]
    if not unvouched:
        yield "One key, or keys that it named by rotation, signed this ledger."
        return
    yield f"{len(uses)} keys signed this ledger, and no earlier key vouches for {len(unvouched)} of them:"
    yield "each machine that measured had a key of its own. A checkpoint covers all events before it. The newest key"
    yield "vouches for the whole ledger; an earlier key vouches for the events up to the last one that it signed"
    yield "([one key](../how-to/keep-one-key.md))."
    yield ""
    yield "| named by event | key | named by | first to sign events |"
    yield "|--:|---|---|---|"
    for one in uses:
        by = {"opened": "the first event", "rotated": "the key before it", "adopted": "a person, no key"}[one.how]
        signed = "none" if one.first is None else f"{one.first} to {one.last}"
        yield f"| {one.seq} | `{one.key.split('+')[1]}` | {by} | {signed} |"


def coverage() -> Iterator[str]:
    """How often the recorded controls' intervals hold their true ratio, which is 1."""
    with Workspace.open(HOME, read_only=True) as workspace:
        found = [
            control
            for recorded in workspace.ledger.read(types=("BenchmarkRecorded", "BenchmarkFailed"))
            if isinstance(recorded.event, BenchmarkRecorded | BenchmarkFailed)
            for timing in recorded.event.workloads
            for control in (timing.control, *((timing.confirmation.control,) if timing.confirmation else ()))
        ]
    held = sum(control.low <= 1 <= control.high for control in found)
    yield f"The interval covers chance between process pairs: of {len(found)} recorded controls, whose true ratio"
    yield f"is 1, {held} intervals hold it, {held / len(found):.0%}"
    yield "([what the 95 % covers](../measurement.md#what-the-95--covers))."


def rows() -> Iterator[tuple[str, ...]]:
    """One row for each candidate's last word."""
    with Workspace.open(HOME, read_only=True) as workspace:
        yield from _rows(workspace)


def _rows(workspace: Workspace) -> Iterator[tuple[str, ...]]:
    history = list(workspace.ledger.read())
    events = [recorded.event for recorded in history]
    tasks = {event.task_id: event.task for event in events if isinstance(event, TaskCreated)}
    promoted = {event.run_id: event.kernel_id for event in events if isinstance(event, KernelPromoted)}
    last = _last(history)
    for task_id in sorted(last, key=lambda one: (tasks[one].op, tasks[one].language, one)):
        seq, event = last[task_id]
        yield (*_row(tasks[task_id], event, promoted), _protocol(workspace, event), f"event {seq}")


def left_out() -> Iterator[str]:
    """What the ledger holds of benchmarks and verdicts that no row shows."""
    with Workspace.open(HOME, read_only=True) as workspace:
        history = list(workspace.ledger.read())
    last = _last(history)
    shown = {seq for seq, _ in last.values()}
    timed = {event.task_id for recorded in history if isinstance(event := recorded.event, _Timed | BenchmarkErrored)}
    yield ""
    yield "## What the table leaves out"
    yield ""
    yield "| left out | how many | why | events |"
    yield "|---|---|---|---|"
    for kind, why in ((_Timed, "a later one of the same task is shown"), (BenchmarkErrored, "the machine failed")):
        seqs = [one.seq for one in history if isinstance(one.event, kind) and one.seq not in shown]
        yield f"| benchmarks | {len(seqs)} | {why} | {', '.join(map(str, seqs))} |"
    never = [
        recorded.seq
        for recorded in history
        if isinstance(event := recorded.event, CandidateVerified) and event.task_id not in timed
    ]
    yield f"| verified candidates | {len(never)} | never timed | {', '.join(map(str, never))} |"


_Timed = BenchmarkRecorded | BenchmarkFailed


def _last(
    history: list[Recorded[Event]],
) -> dict[str, tuple[int, BenchmarkRecorded | BenchmarkFailed | CandidateRejected]]:
    """Task -> its newest benchmark or refusal."""
    return {
        recorded.event.task_id: (recorded.seq, recorded.event)
        for recorded in history
        if isinstance(recorded.event, _Timed | CandidateRejected)
    }


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
