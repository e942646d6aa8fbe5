"""Which kernels are promoted, on what evidence, and what became of them: the fold behind the published files.

A promotion is believed only as far as the events it names bear it out: its id is the family's next ordinal,
its evidence is about the same candidate, and its figures and coverage are those of that evidence. Anything
else is a broken ledger, and no registry is rendered from it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from forge.domain.digest import Digest, canonical
from forge.domain.environment import Environment
from forge.errors import LedgerCorrupt
from forge.events import Event, Recorded
from forge.events.benchmark import BenchmarkInvalidated, BenchmarkRecorded
from forge.events.environment import EnvironmentCaptured
from forge.events.promote import KernelDeprecated, KernelPromoted, KernelRevoked
from forge.events.verify import CandidateVerified
from forge.projections.entry import entry
from forge.projections.fold import Position, holds
from forge.projections.kernel import KERNEL_FILE, Kernel

SCHEMA_VERSION = 1
"""Of `verified_kernels.json`."""
PROJECTOR_VERSION = 1
"""Of the fold's meaning; another number means: rebuild."""
FILE = "verified_kernels.json"


@dataclass(frozen=True, slots=True)
class RegistryState:
    """The registry after some prefix of the ledger. Values handed out are never changed."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    families: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Family -> kernel ids in the order of their promotion."""
    verified: dict[int, Recorded[CandidateVerified]] = field(default_factory=dict)
    """Evidence by its place, for a promotion to name."""
    benchmarks: dict[int, Recorded[BenchmarkRecorded]] = field(default_factory=dict)
    invalidated: dict[int, Recorded[BenchmarkInvalidated]] = field(default_factory=dict)
    """By the place of the benchmark that no longer counts."""
    environments: dict[Digest, Environment] = field(default_factory=dict)

    def copied(self) -> "RegistryState":
        """A state of its own that `take` may extend."""
        return RegistryState(
            kernels=dict(self.kernels),
            families=dict(self.families),
            verified=dict(self.verified),
            benchmarks=dict(self.benchmarks),
            invalidated=dict(self.invalidated),
            environments=dict(self.environments),
        )


EMPTY = RegistryState()


def apply(state: RegistryState, recorded: Recorded[Event]) -> RegistryState:
    """The registry after one more event; `state` stays as it was. Raises LedgerCorrupt."""
    return fold(state, (recorded,))


def fold(state: RegistryState, events: Iterable[Recorded[Event]]) -> RegistryState:
    """The registry after `events`, in one pass; `state` stays as it was. Raises LedgerCorrupt."""
    own = state.copied()
    for recorded in events:
        take(own, recorded)
    return own


def take(own: RegistryState, recorded: Recorded[Event]) -> None:
    """Extend a state that nobody else holds (see `RegistryState.copied`) by one event."""
    if holds(recorded, CandidateVerified):
        own.verified[recorded.seq] = recorded
    elif holds(recorded, BenchmarkRecorded):
        own.benchmarks[recorded.seq] = recorded
    elif holds(recorded, EnvironmentCaptured):
        own.environments[recorded.event.env_sha256] = recorded.event.environment
    elif holds(recorded, KernelPromoted):
        _promote(own, recorded)
    elif holds(recorded, KernelDeprecated):
        kernel = _named(own, recorded.seq, recorded.event.kernel_id, recorded.event.family)
        own.kernels[kernel.kernel_id] = replace(kernel, deprecated=recorded)
    elif holds(recorded, KernelRevoked):
        kernel = _named(own, recorded.seq, recorded.event.kernel_id, recorded.event.family)
        own.kernels[kernel.kernel_id] = replace(kernel, revoked=kernel.revoked or recorded)
    elif holds(recorded, BenchmarkInvalidated):
        _invalidate(own, recorded)


def _promote(own: RegistryState, recorded: Recorded[KernelPromoted]) -> None:
    event = recorded.event
    earlier = own.families.get(event.family, ())
    ordinal = len(earlier) + 1
    if event.family != event.task.family:
        raise _corrupt(recorded, f"family {event.family!r}, expected {event.task.family!r} by its task")
    if event.version != ordinal or event.kernel_id != f"{event.family}_v{ordinal}":
        expected = f"{event.family}_v{ordinal}"
        raise _corrupt(recorded, f"{event.kernel_id!r} version {event.version}, expected {expected!r}")
    if KERNEL_FILE not in {file.path for file in event.files}:
        raise _corrupt(recorded, f"no {KERNEL_FILE} among its files")
    verified = own.verified.get(event.verified_seq)
    benchmark = own.benchmarks.get(event.benchmark_seq)
    if verified is None:
        raise _corrupt(recorded, f"event {event.verified_seq}, which is no CandidateVerified before it")
    if benchmark is None:
        raise _corrupt(recorded, f"event {event.benchmark_seq}, which is no BenchmarkRecorded before it")
    kernel = Kernel(
        promoted=recorded,
        verified=verified,
        benchmark=benchmark,
        environment=own.environments.get(event.env_sha256),
        invalidated=own.invalidated.get(event.benchmark_seq),
    )
    _check_evidence(kernel)
    own.kernels[event.kernel_id] = kernel
    own.families[event.family] = (*earlier, event.kernel_id)


def _check_evidence(kernel: Kernel) -> None:
    """Raise LedgerCorrupt unless the promotion repeats what its evidence says."""
    promoted, verified, benchmark = kernel.promoted, kernel.verified.event, kernel.benchmark.event
    event = promoted.event
    if not event.candidate == verified.candidate == benchmark.candidate:
        raise _corrupt(promoted, "evidence about another candidate")
    if benchmark.verified_seq != event.verified_seq:
        raise _corrupt(promoted, "a benchmark that stands on another verification")
    if verified.simulated:
        raise _corrupt(promoted, "a simulated verification, which can't be promoted")
    measured_shapes = [workload.shape for workload in benchmark.workloads]
    if not all(shape in verified.shapes_verified for shape in event.coverage.verified):
        raise _corrupt(promoted, "coverage beyond the shapes verified")
    if not all(shape in measured_shapes for shape in event.coverage.measured):
        raise _corrupt(promoted, "coverage beyond the shapes measured")
    point = kernel.promoted_point
    if point is None:
        raise _corrupt(promoted, f"no measurement at its own shape against {event.baseline!r}")
    shown = (event.speedup, event.candidate_median_ns, event.baseline_median_ns)
    recorded = (
        point.speedup.interval,
        point.workload.candidate.median_ns,
        point.speedup.baseline_median_ns,
    )
    if shown != recorded:
        raise _corrupt(promoted, f"figures other than those of event {kernel.benchmark.seq}")


def _named(own: RegistryState, seq: int, kernel_id: str, family: str) -> Kernel:
    kernel = own.kernels.get(kernel_id)
    if kernel is None or kernel.promoted.event.family != family:
        raise LedgerCorrupt(f"event {seq} names kernel {kernel_id!r} of {family!r}, which was never promoted")
    return kernel


def _invalidate(own: RegistryState, recorded: Recorded[BenchmarkInvalidated]) -> None:
    benchmark_seq = recorded.event.benchmark_seq
    own.invalidated.setdefault(benchmark_seq, recorded)
    for kernel_id, kernel in own.kernels.items():
        if kernel.benchmark.seq == benchmark_seq and kernel.invalidated is None:
            own.kernels[kernel_id] = replace(kernel, invalidated=recorded)


def _corrupt(recorded: Recorded[KernelPromoted], found: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"event {recorded.seq} promotes {recorded.event.kernel_id!r} but names {found}")


def ordered(state: RegistryState) -> list[Kernel]:
    """Every kernel, by kernel_id."""
    return [state.kernels[kernel_id] for kernel_id in sorted(state.kernels)]


def render(state: RegistryState, position: Position) -> bytes:
    """`verified_kernels.json`, canonical."""
    return canonical(
        {
            "schema_version": SCHEMA_VERSION,
            "projector_version": PROJECTOR_VERSION,
            "ledger": position.document(),
            "kernels": [entry(kernel) for kernel in ordered(state)],
        }
    )
