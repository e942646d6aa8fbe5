"""Folds the registry: which kernels are promoted, on what evidence, and what became of them.

A promotion is accepted only if the events that it names agree with it (`promotion`). Its id must be the family's next
number, and its run must be decided once. Otherwise the ledger is broken, and no registry is rendered from it.
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
from forge.lookup.answer import KERNEL_FILE
from forge.projections import leaderboard, snapshot
from forge.projections.fold import Source, holds
from forge.projections.kernel import PromotedKernel
from forge.projections.promotion import corrupt, require_promotion, require_run
from forge.projections.registry_entry import entry
from forge.projections.replication import require_replication
from forge.projections.rows import kernel_row
from forge.projections.standing import Standing
from forge.projections.state import Cell, Row, State
from forge.projections.withdrawals import require_benchmark, require_evidence, require_successor

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
"""Query for the kernels that rest on one benchmark."""


def take(state: State, line: Line, source: Source) -> None:
    """Extend the registry by one event; raise LedgerCorrupt if earlier events contradict it."""
    recorded = source.event_at(line.seq)
    if holds(recorded, KernelPromoted):
        _promote(state, recorded, source)
    elif holds(recorded, KernelDeprecated):
        kernel = _named(state, recorded, source)
        require_successor(state, recorded)
        _put(state, _ended(kernel, recorded))
    elif holds(recorded, KernelRevoked):
        kernel = _named(state, recorded, source)
        require_evidence(recorded, source)
        _put(state, _ended(kernel, recorded))
    elif holds(recorded, ReplicationRecorded):
        kernel = _named(state, recorded, source)
        require_replication(kernel, recorded, _environment(state, recorded, source))
        _put(state, _ended(kernel, recorded))
    elif holds(recorded, BenchmarkInvalidated):
        require_benchmark(recorded, source)
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
        raise corrupt(recorded, f"family {event.family!r}, expected {event.task.family!r} by its task")
    if event.version != ordinal or event.kernel_id != f"{event.family}_v{ordinal}":
        expected = f"{event.family}_v{ordinal}"
        raise corrupt(recorded, f"{event.kernel_id!r} version {event.version}, expected {expected!r}")
    if KERNEL_FILE not in {file.path for file in event.files}:
        raise corrupt(recorded, f"no {KERNEL_FILE} among its files")
    environment = state.get("environments", event.env_sha256)
    withdrawn = state.get("invalidations", event.benchmark_seq)
    seqs: Row = {
        "environment_seq": environment["seq"] if environment else None,
        "invalidated_seq": withdrawn["seq"] if withdrawn else None,
    }
    kernel = _assembled(recorded, seqs, source)
    judged_on = state.get("environments", kernel.verified.event.env_sha256)
    require_promotion(kernel, _at(source, judged_on["seq"]) if judged_on else None, source)
    require_run(state, recorded)
    _put(state, kernel)
    state.put("families", {"family": event.family, "versions": ordinal}, event.family)


def load(state: State, kernel_id: str, source: Source) -> PromotedKernel:
    """Return a kernel with the events that it rests on.

    Raises LedgerCorrupt if the kernel isn't where the tables say.
    """
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
        raise corrupt(promoted, f"event {promoted.event.verified_seq}, which is no CandidateVerified before it")
    if not holds(benchmark, BenchmarkRecorded):
        raise corrupt(promoted, f"event {promoted.event.benchmark_seq}, which is no BenchmarkRecorded before it")
    environment, invalidated = _at(source, row["environment_seq"]), _at(source, row["invalidated_seq"])
    if not holds(environment, EnvironmentCaptured):
        raise corrupt(promoted, f"machine {promoted.event.env_sha256!r}, which isn't in the ledger before it")
    deprecated, revoked = _at(source, row.get("deprecated_seq")), _at(source, row.get("revoked_seq"))
    held, contradicted = _at(source, row.get("held_seq")), _at(source, row.get("contradicted_seq"))
    return PromotedKernel(
        promoted=promoted,
        verified=verified,
        benchmark=benchmark,
        environment=environment,
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
        raise corrupt(promoted, f"event {seq}, which is no ShapeTimed before its benchmark")
    own, one = benchmark.event, found.event
    names = ("candidate", "run_id", "task_id", "verified_seq", "env_sha256", "policy_sha256")
    differs = next((name for name in names if getattr(one, name) != getattr(own, name)), None)
    if differs is not None:
        raise corrupt(promoted, f"event {seq}, which has another {differs} than its benchmark")
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


def _named(
    state: State, recorded: Recorded[KernelDeprecated | KernelRevoked | ReplicationRecorded], source: Source
) -> PromotedKernel:
    kernel_id, family = recorded.event.kernel_id, recorded.event.family
    row = state.get("kernels", kernel_id)
    if row is None or row["family"] != family:
        raise LedgerCorrupt(
            f"event {recorded.seq} names kernel {kernel_id!r} of {family!r}: expected one that was promoted before"
        )
    return load(state, kernel_id, source)
