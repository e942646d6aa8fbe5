"""Folds the registry: which kernels are promoted, on what evidence, and what became of them.

A promotion is accepted only if the events that it names agree with it. Its id must be the family's next number, and
its evidence must be about the same candidate. Its figures and coverage must be those of that evidence. Otherwise the
ledger is broken, and no registry is rendered from it.
"""

from dataclasses import replace

from forge.domain.digest import canonical
from forge.errors import LedgerCorrupt
from forge.events import Event, Recorded
from forge.events.benchmark import BenchmarkInvalidated, BenchmarkRecorded, ShapeTimed
from forge.events.environment import EnvironmentCaptured
from forge.events.promote import KernelDeprecated, KernelPromoted, KernelRevoked, ReplicationRecorded
from forge.events.verify import CandidateVerified
from forge.ledger.replay import Line
from forge.projections import leaderboard, snapshot
from forge.projections.fold import Source, holds
from forge.projections.kernel import KERNEL_FILE, PromotedKernel
from forge.projections.registry_entry import entry
from forge.projections.replication import require_replication
from forge.projections.rows import kernel_row
from forge.projections.standing import Standing
from forge.projections.state import Cell, Row, State

TYPES = frozenset(
    {
        "LedgerOpened",
        "KernelPromoted",
        "KernelDeprecated",
        "KernelRevoked",
        "BenchmarkInvalidated",
        "ReplicationRecorded",
    }
)
STOOD_ON = "SELECT kernel_id FROM kernels WHERE benchmark_seq = ? AND invalidated_seq IS NULL ORDER BY kernel_id"


def take(state: State, line: Line, source: Source) -> None:
    """Extend the registry by one event; raise LedgerCorrupt if earlier events contradict it."""
    recorded = source.event_at(line.seq)
    if holds(recorded, KernelPromoted):
        _promote(state, recorded, source)
    elif holds(recorded, KernelDeprecated) or holds(recorded, KernelRevoked):
        _put(state, _ended(_named(state, recorded, source), recorded))
    elif holds(recorded, ReplicationRecorded):
        kernel = _named(state, recorded, source)
        require_replication(kernel, recorded, _environment(state, recorded, source))
        _put(state, _ended(kernel, recorded))
    elif holds(recorded, BenchmarkInvalidated):
        for (kernel_id,) in state.ask(STOOD_ON, (recorded.event.benchmark_seq,)):
            _put(state, _ended(load(state, str(kernel_id), source), recorded))
    state.registry_changed(line)


def _environment(state: State, recorded: Recorded[ReplicationRecorded], source: Source) -> EnvironmentCaptured | None:
    row = state.get("environments", recorded.event.env_sha256)
    captured = _at(source, row["seq"]) if row else None
    return captured.event if holds(captured, EnvironmentCaptured) else None


def _ended(kernel: PromotedKernel, recorded: Recorded[Event]) -> PromotedKernel:
    return replace(kernel, standing=kernel.standing.after(recorded))


def _promote(state: State, recorded: Recorded[KernelPromoted], source: Source) -> None:
    event = recorded.event
    family = state.get("families", event.family)
    ordinal = int(str(family["versions"])) + 1 if family else 1
    if event.family != event.task.family:
        raise _corrupt(recorded, f"family {event.family!r}, expected {event.task.family!r} by its task")
    if event.version != ordinal or event.kernel_id != f"{event.family}_v{ordinal}":
        expected = f"{event.family}_v{ordinal}"
        raise _corrupt(recorded, f"{event.kernel_id!r} version {event.version}, expected {expected!r}")
    if KERNEL_FILE not in {file.path for file in event.files}:
        raise _corrupt(recorded, f"no {KERNEL_FILE} among its files")
    environment = state.get("environments", event.env_sha256)
    withdrawn = state.get("invalidations", event.benchmark_seq)
    seqs: Row = {
        "environment_seq": environment["seq"] if environment else None,
        "invalidated_seq": withdrawn["seq"] if withdrawn else None,
    }
    kernel = _assembled(recorded, seqs, source)
    _check_evidence(kernel)
    _put(state, kernel)
    state.put("families", {"family": event.family, "versions": ordinal}, event.family)


def load(state: State, kernel_id: str, source: Source) -> PromotedKernel:
    """Return a kernel with the events that it rests on."""
    row = state.get("kernels", kernel_id)
    promoted = _at(source, row["promoted_seq"]) if row else None
    if row is None or not holds(promoted, KernelPromoted):
        raise LedgerCorrupt(f"kernel {kernel_id!r} isn't where the projection says: rebuild it from zero")
    return _assembled(promoted, row, source)


def _assembled(promoted: Recorded[KernelPromoted], row: Row, source: Source) -> PromotedKernel:
    """Return the kernel of a promotion, with the later events that `row` names."""
    verified = _before(source, promoted, promoted.event.verified_seq)
    benchmark = _before(source, promoted, promoted.event.benchmark_seq)
    if not holds(verified, CandidateVerified):
        raise _corrupt(promoted, f"event {promoted.event.verified_seq}, which is no CandidateVerified before it")
    if not holds(benchmark, BenchmarkRecorded):
        raise _corrupt(promoted, f"event {promoted.event.benchmark_seq}, which is no BenchmarkRecorded before it")
    environment, invalidated = _at(source, row["environment_seq"]), _at(source, row["invalidated_seq"])
    deprecated, revoked = _at(source, row.get("deprecated_seq")), _at(source, row.get("revoked_seq"))
    held, contradicted = _at(source, row.get("held_seq")), _at(source, row.get("contradicted_seq"))
    return PromotedKernel(
        promoted=promoted,
        verified=verified,
        benchmark=benchmark,
        environment=environment if holds(environment, EnvironmentCaptured) else None,
        standing=Standing(
            deprecated=deprecated if holds(deprecated, KernelDeprecated) else None,
            invalidated=invalidated if holds(invalidated, BenchmarkInvalidated) else None,
            revoked=revoked if holds(revoked, KernelRevoked) else None,
            held=held if holds(held, ReplicationRecorded) else None,
            contradicted=contradicted if holds(contradicted, ReplicationRecorded) else None,
        ).measured_by(benchmark.event),
        further=tuple(_further(source, promoted, benchmark, seq) for seq in benchmark.event.further_seqs),
    )


def _further(
    source: Source, promoted: Recorded[KernelPromoted], benchmark: Recorded[BenchmarkRecorded], seq: int
) -> Recorded[ShapeTimed]:
    """Return what the benchmark names of a further shape; raise LedgerCorrupt if that is about something else."""
    found = source.event_at(seq) if 0 < seq < benchmark.seq else None
    if not holds(found, ShapeTimed):
        raise _corrupt(promoted, f"event {seq}, which is no ShapeTimed before its benchmark")
    own, one = benchmark.event, found.event
    if (one.candidate, one.task_id, one.verified_seq) != (own.candidate, own.task_id, own.verified_seq):
        raise _corrupt(promoted, f"event {seq}, which is about another candidate, task or verification")
    return found


def _at(source: Source, seq: Cell) -> Recorded[Event] | None:
    return source.event_at(seq) if isinstance(seq, int) else None


def _before(source: Source, promoted: Recorded[KernelPromoted], seq: int) -> Recorded[Event] | None:
    return source.event_at(seq) if 0 < seq < promoted.seq else None


def _put(state: State, kernel: PromotedKernel) -> None:
    """Write the kernel's row, and what the documents show of it."""
    state.put("kernels", kernel_row(kernel), kernel.kernel_id)
    shown: Row = {
        "kernel_id": kernel.kernel_id,
        "entry": canonical(entry(kernel)).decode(),
        "lookup": canonical(snapshot.shown(kernel)).decode(),
        "rank": canonical(leaderboard.shown(kernel)).decode(),
    }
    state.put("kernel_documents", shown, kernel.kernel_id)


def _check_evidence(kernel: PromotedKernel) -> None:
    """Raise LedgerCorrupt unless the promotion agrees with its evidence."""
    promoted, verified, benchmark = kernel.promoted, kernel.verified.event, kernel.benchmark.event
    event = promoted.event
    if not event.candidate == verified.candidate == benchmark.candidate:
        raise _corrupt(promoted, "evidence about another candidate")
    if benchmark.verified_seq != event.verified_seq:
        raise _corrupt(promoted, "a benchmark that stands on another verification")
    if verified.simulated:
        raise _corrupt(promoted, "a simulated verification, which can't be promoted")
    measured_shapes = [workload.shape for workload in benchmark.workloads]
    measured_shapes += [one.event.shape for one in kernel.further if one.event.timing and one.event.reason is None]
    if not all(shape in verified.shapes_verified for shape in event.coverage.verified):
        raise _corrupt(promoted, "coverage beyond the shapes verified")
    if not all(shape in measured_shapes for shape in event.coverage.measured):
        raise _corrupt(promoted, "coverage beyond the shapes measured")
    if event.domain != verified.domain:
        raise _corrupt(promoted, "another domain than the one verified")
    point = kernel.promoted_point
    if point is None:
        raise _corrupt(promoted, f"no measurement at its own shape against {event.baseline!r}")
    shown = (event.speedup, event.candidate_median_ns, event.baseline_median_ns)
    recorded = (
        point.speedup.interval,
        point.candidate_median_ns,
        point.speedup.baseline_median_ns,
    )
    if shown != recorded:
        raise _corrupt(promoted, f"figures other than those of event {kernel.benchmark.seq}")


def _named(
    state: State, recorded: Recorded[KernelDeprecated | KernelRevoked | ReplicationRecorded], source: Source
) -> PromotedKernel:
    kernel_id, family = recorded.event.kernel_id, recorded.event.family
    row = state.get("kernels", kernel_id)
    if row is None or row["family"] != family:
        raise LedgerCorrupt(
            f"event {recorded.seq} names kernel {kernel_id!r} of {family!r}, which was never promoted"
        )
    return load(state, kernel_id, source)


def _corrupt(recorded: Recorded[KernelPromoted], found: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"event {recorded.seq} promotes {recorded.event.kernel_id!r} but names {found}")
