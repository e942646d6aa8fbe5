"""The page on the registry that ships: what every candidate of its ledger came to, from the events alone."""

from collections.abc import Iterator
from pathlib import Path

from forge.app.user.home import LEDGER_FILE
from forge.app.workspace import Workspace
from forge.claims.named import baseline_name
from forge.domain.evidence import Confirmation, ResidentTiming, WorkloadTiming
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
from forge.pipeline.promotion_rule import fastest
from forge.pipeline.samples import protocol_of
from forge.projections.standing import Standing, Standings

HOME = Path(__file__).resolve().parents[1]
HEADER = (
    "operation",
    "language",
    "type",
    "shape",
    "GPU",
    "kernel",
    "best other",
    "ratio, 95 % interval",
    "of the floor",
    "came to",
    "evidence",
    "protocol",
    "event",
)
RESIDENT_HEADER = (*HEADER[:5], "regime", *HEADER[5:8], "event")


def introduction() -> Iterator[str]:
    """What the table shows."""
    yield "This page lists the results in the ledger that ships with Forge."
    yield "`kernel_registry.db`, `forge_runs/` and `kernel_registry/` at the project's top level are a workspace."
    yield "`benchmarks/registry.py` took the kernels in `examples/h200/` through the pipeline on NVIDIA H200"
    yield "and H100 GPUs, and the ledger holds what was decided."
    yield "A row is the newest benchmark or refusal of one slot (operation, language, type, shape and GPU), baselines"
    yield "that stand included. A kernel on offer has its row even if a newer one of its slot came to something else."
    yield "Results without a row are [listed below](#what-the-table-leaves-out)."
    yield "`forge ledger verify --full` computes every number again from its samples;"
    yield "`forge kernel history KERNEL` shows the evidence of a promotion."
    yield ""
    yield from _keys()
    yield ""
    yield "Times are medians per call by graph replay; the best other is the fastest of eager, torch.compile, the"
    yield "vendor's operator, the contenders that were installed and the incumbent. A promoted kernel's numbers are"
    yield "those of its confirmation, on fresh data."
    yield "Times are of cold operands. Those of the other regime have [their own table](#with-resident-operands)."
    yield "A baseline stands if the kernel doesn't reach the least speedup that its task asks for: near the floor"
    yield "there is nothing to gain."
    yield from coverage()
    yield from _offered()
    yield "A window of `graph_replay.v2` waited a few microseconds for bytes that were written before it, on all"
    yield "sides alike; later windows don't. The baseline of `graph_replay.v3` was one tuning of torch.compile, which"
    yield "may have been a slow one ([windows](../measurement.md#windows-of-replays))."
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


def _offered() -> Iterator[str]:
    """How many kernels a lookup answers with, and how many were measured again."""
    with Workspace.open(HOME, read_only=True) as workspace:
        history = list(workspace.ledger.read())
    standings = Standings(history)
    promoted = [one.event for one in history if isinstance(one.event, KernelPromoted)]
    stands = [standings.of(event.kernel_id, event.benchmark_seq) for event in promoted]
    on_offer = [one for one in stands if one.status == "active"]
    twice = sum(one.evidence == "replicated" for one in on_offer)
    against = sum(one.status == "not_replicated" for one in stands)
    yield f"Of {len(promoted)} promoted kernels {len(on_offer)} are on offer. The others were withdrawn, or measured"
    yield "by a protocol that no longer counts: the column *evidence* says which."
    yield f"A second measurement on another occasion held for {twice} of those on offer, and contradicted the first"
    yield f"for {against} kernels"
    yield "([replication](../measurement.md#the-spread-between-sessions))."


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
    """One row for each slot's newest result, and one for each kernel on offer."""
    with Workspace.open(HOME, read_only=True) as workspace:
        yield from _rows(workspace)


def _rows(workspace: Workspace) -> Iterator[tuple[str, ...]]:
    history = list(workspace.ledger.read())
    events = [recorded.event for recorded in history]
    tasks = {event.task_id: event.task for event in events if isinstance(event, TaskCreated)}
    promoted = {event.run_id: event.kernel_id for event in events if isinstance(event, KernelPromoted)}
    standings = Standings(history)
    for seq, event in _shown(history, standings):
        kernel_id = promoted.get(event.run_id)
        row = _row(tasks[event.task_id], event, promoted)
        if kernel_id is not None and _is_taken_back(standings.of(kernel_id, seq)):
            row = (*row[:5], *[""] * 4, row[-1])  # nothing may be said about its speed
        evidence = "" if kernel_id is None else _evidence(standings.of(kernel_id, seq))
        yield (*row, evidence, _protocol(workspace, event), f"event {seq}")


def _is_taken_back(standing: Standing) -> bool:
    return standing.status not in ("active", "evidence_stale")


def _evidence(standing: Standing) -> str:
    return standing.evidence if standing.status == "active" else standing.status.replace("_", " ")


def left_out() -> Iterator[str]:
    """What the ledger holds of benchmarks and verdicts that no row shows."""
    with Workspace.open(HOME, read_only=True) as workspace:
        history = list(workspace.ledger.read())
    shown = {seq for seq, _ in _shown(history, Standings(history))}
    timed = {event.task_id for recorded in history if isinstance(event := recorded.event, _Timed | BenchmarkErrored)}
    refused = [one.seq for one in history if isinstance(one.event, CandidateRejected) and one.seq not in shown]
    yield ""
    yield "## What the table leaves out"
    yield ""
    yield "| left out | how many | why | events |"
    yield "|---|---|---|---|"
    for kind, why in ((_Timed, "a later one of the same slot is shown"), (BenchmarkErrored, "the machine failed")):
        seqs = [one.seq for one in history if isinstance(one.event, kind) and one.seq not in shown]
        yield f"| benchmarks | {len(seqs)} | {why} | {', '.join(map(str, seqs))} |"
    yield f"| refusals | {len(refused)} | a later result of the same slot is shown | {', '.join(map(str, refused))} |"
    never = [
        recorded.seq
        for recorded in history
        if isinstance(event := recorded.event, CandidateVerified) and event.task_id not in timed
    ]
    yield f"| verified candidates | {len(never)} | never timed | {', '.join(map(str, never))} |"


_Timed = BenchmarkRecorded | BenchmarkFailed


Slot = tuple[str, ...]
"""Operation, language, type, sizes and GPU of a task."""
Shown = BenchmarkRecorded | BenchmarkFailed | CandidateRejected
"""Event that a row is made of."""


def _shown(history: list[Recorded[Event]], standings: Standings) -> list[tuple[int, Shown]]:
    """The newest benchmark or refusal of each slot, and before it those of kernels on offer, in the slots' order."""
    slots = {one.event.task_id: _slot(one.event.task) for one in history if isinstance(one.event, TaskCreated)}
    offered = {
        one.event.benchmark_seq
        for one in history
        if isinstance(one.event, KernelPromoted)
        and standings.of(one.event.kernel_id, one.event.benchmark_seq).status == "active"
    }
    found: dict[Slot, list[tuple[int, Shown]]] = {}
    for recorded in history:
        if isinstance(event := recorded.event, _Timed | CandidateRejected):
            kept = [one for one in found.get(slots[event.task_id], []) if one[0] in offered]
            found[slots[event.task_id]] = [*kept, (recorded.seq, event)]
    return [row for _, rows in sorted(found.items()) for row in rows]


def _slot(task: Task) -> Slot:
    sizes = (f"{axis} {size:9}" for axis, size in sorted(task.shape.items()))
    return (task.op, task.language, task.dtype, *sizes, task.target.gpu)


def _row(task: Task, event: Shown, promoted: dict[str, str]) -> tuple[str, ...]:
    named = _named(task)
    if isinstance(event, CandidateRejected):
        return (*named, "", "", "", "", f"refused: {event.reason.code}")
    came_to = f"`{promoted[event.run_id]}`" if event.run_id in promoted else _ended(event)
    undecided = isinstance(event, BenchmarkFailed) and event.reason.code in UNDECIDED
    if undecided or not event.workloads:  # numbers without a verdict say nothing
        return (*named, "", "", "", "", came_to)
    return (*named, *_numbers(task, event.workloads[0]), came_to)


def _named(task: Task) -> tuple[str, ...]:
    """The cells that name a slot."""
    shape = ", ".join(f"{axis} {size}" for axis, size in task.shape.items())
    return (task.op, task.language, task.dtype, shape, task.target.gpu.upper())


def _protocol(workspace: Workspace, event: Shown) -> str:
    """What the samples were taken by."""
    if isinstance(event, CandidateRejected) or not event.workloads:
        return ""
    return protocol_of(workspace.blobs.get(event.workloads[0].samples_sha256)) or ""


def _ended(event: BenchmarkRecorded | BenchmarkFailed) -> str:
    if isinstance(event, BenchmarkRecorded):
        return "not promoted"
    return "baseline stands" if event.reason.code == "TOO_SLOW" else f"no verdict: {event.reason.code}"


def _numbers(task: Task, timing: WorkloadTiming) -> tuple[str, ...]:
    shown = timing.confirmation or timing
    return (*_over_the_fastest(task, shown), f"{timing.floor_ns / shown.candidate.median_ns:.0%}")


def _over_the_fastest(task: Task, shown: WorkloadTiming | ResidentTiming | Confirmation) -> tuple[str, ...]:
    """The kernel's time, that of the fastest other, and the ratio."""
    kind = fastest(task, shown.speedups)
    against = next(one for one in shown.speedups if one.baseline == kind)
    found = against.interval
    return (
        f"{shown.candidate.median_ns / 1000:.2f} us",
        f"{baseline_name(kind)} {against.baseline_median_ns / 1000:.2f} us",
        f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})",
    )


def resident_rows() -> Iterator[tuple[str, ...]]:
    """One row for each of those benchmarks that measured resident operands and have a verdict."""
    with Workspace.open(HOME, read_only=True) as workspace:
        history = list(workspace.ledger.read())
    tasks = {one.event.task_id: one.event.task for one in history if isinstance(one.event, TaskCreated)}
    promoted = {one.event.run_id: one.event.kernel_id for one in history if isinstance(one.event, KernelPromoted)}
    standings = Standings(history)
    for seq, event in _shown(history, standings):
        if isinstance(event, CandidateRejected) or not event.workloads:
            continue
        residency = event.workloads[0].residency
        undecided = isinstance(event, BenchmarkFailed) and event.reason.code in UNDECIDED
        if undecided or residency is None or residency.timing is None:
            continue
        kernel_id = promoted.get(event.run_id)
        if kernel_id is not None and _is_taken_back(standings.of(kernel_id, seq)):
            continue
        task, shown = tasks[event.task_id], residency.timing.confirmation or residency.timing
        yield (*_named(task), "with resident operands", *_over_the_fastest(task, shown), f"event {seq}")


def resident() -> Iterator[str]:
    """What the table of the second regime shows."""
    yield "## With resident operands"
    yield ""
    yield "[In this regime](../measurement.md#two-regimes) a kernel finds its operands in the cache, as a decode step"
    yield "leaves them. A slot has a row if its operands fit into half of the cache and the regime was measured."
    yield ""
