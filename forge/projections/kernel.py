"""Describes one promoted kernel version: the evidence for it, and its standing since."""

from dataclasses import dataclass

from forge.domain.digest import Digest
from forge.domain.evidence import Confirmation, ResidentTiming, Speedup, Timing, WorkloadTiming
from forge.domain.policy import BaselineKind, Regime, TimingAuthority
from forge.domain.tensors import Shape
from forge.events import Recorded
from forge.events.benchmark import BenchmarkRecorded, ShapeTimed
from forge.events.environment import EnvironmentCaptured
from forge.events.promote import KernelPromoted
from forge.events.verify import CandidateVerified
from forge.lookup.answer import KERNEL_FILE
from forge.projections.standing import NOTHING_SAID, Standing, Status


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """The speed of a kernel at one shape in one regime; from the confirmation if there is one.

    The cold regime is over the promotion's baseline, the resident one over the fastest baseline in that regime.
    """

    workload: WorkloadTiming
    speedup: Speedup
    regime: Regime = "cold"

    @property
    def candidate_median_ns(self) -> float:
        """Return the kernel's median time in nanoseconds."""
        return self._counted.median_ns

    @property
    def method(self) -> TimingAuthority:
        """Return which clock gave the kernel's time."""
        return self._counted.method

    @property
    def _counted(self) -> Timing:
        residency = self.workload.residency
        if self.regime == "resident" and residency is not None and residency.timing is not None:
            return (residency.timing.confirmation or residency.timing).candidate
        return (self.workload.confirmation or self.workload).candidate

    @property
    def shape(self) -> Shape:
        """Return the shape at which it was measured."""
        return self.workload.shape


def fastest(timing: ResidentTiming) -> BaselineKind:
    """Return the baseline with the smallest median."""
    return min(timing.speedups, key=lambda one: (one.baseline_median_ns, one.baseline)).baseline


def speedup_of(measured: WorkloadTiming | ResidentTiming | Confirmation, baseline: BaselineKind) -> Speedup:
    """Return the speedup over a baseline that was measured."""
    return next(one for one in measured.speedups if one.baseline == baseline)


@dataclass(frozen=True, slots=True)
class PromotedKernel:
    """A kernel version as the ledger records it."""

    promoted: Recorded[KernelPromoted]
    verified: Recorded[CandidateVerified]
    benchmark: Recorded[BenchmarkRecorded]
    environment: Recorded[EnvironmentCaptured]
    """The machine on which it was measured."""
    standing: Standing = NOTHING_SAID
    further: tuple[Recorded[ShapeTimed], ...] = ()
    """What the benchmark names of the task's further shapes, in its order."""

    @property
    def kernel_id(self) -> str:
        """Return the kernel's id, `<family>_v<n>`."""
        return self.promoted.event.kernel_id

    @property
    def status(self) -> Status:
        """Return whether a lookup may answer with it, and what ended it if not."""
        return self.standing.status

    @property
    def status_seq(self) -> int:
        """Return the event that `status` comes from."""
        return (self.standing.ended or self.promoted).seq

    @property
    def superseded_by(self) -> str | None:
        """Return the kernel to use instead, if a deprecation named one."""
        return self.standing.deprecated.event.superseded_by if self.standing.deprecated else None

    @property
    def published_path(self) -> str:
        """Return the path of kernel.py, relative to the published registry."""
        return f"kernels/{self.kernel_id}/{KERNEL_FILE}"

    @property
    def source_path(self) -> str:
        """Return the path of kernel.py, relative to the workspace."""
        return f"kernel_registry/{self.published_path}"

    @property
    def source_sha256(self) -> Digest:
        """Return the digest of kernel.py; the registry has checked that it is among the files."""
        return next(file.sha256 for file in self.promoted.event.files if file.path == KERNEL_FILE)

    @property
    def _timings(self) -> tuple[tuple[WorkloadTiming, BaselineKind], ...]:
        """The timings at the shapes that the promotion covers, each with the baseline that had to be beaten."""
        own = [(workload, self.promoted.event.baseline) for workload in self.benchmark.event.workloads]
        events = (one.event for one in self.further)
        others = [(one.timing, one.baseline_used) for one in events if one.timing and one.baseline_used]
        covered = self.promoted.event.coverage.measured
        return tuple((timing, used) for timing, used in (*own, *others) if timing.shape in covered)

    @property
    def unproven(self) -> tuple[ShapeTimed, ...]:
        """Return the further shapes at which it was measured, and for which it isn't promoted."""
        covered = self.promoted.event.coverage.measured
        return tuple(one.event for one in self.further if one.event.shape not in covered)

    @property
    def points(self) -> tuple[MeasuredPoint, ...]:
        """Return the measured shapes that the promotion covers, in the benchmark's order."""
        return tuple(
            MeasuredPoint(workload, speedup)
            for workload, used in self._timings
            for speedup in (workload.confirmation or workload).speedups
            if speedup.baseline == used
        )

    @property
    def resident_points(self) -> tuple[MeasuredPoint, ...]:
        """Return the same shapes with resident operands, where that was measured."""
        return tuple(
            MeasuredPoint(workload, speedup_of(timing.confirmation or timing, fastest(timing)), "resident")
            for workload, _ in self._timings
            if workload.residency is not None
            for timing in (workload.residency.timing,)
            if timing is not None
        )

    @property
    def promoted_point(self) -> MeasuredPoint | None:
        """Return the measurement at the task's own shape."""
        return next((point for point in self.points if point.shape == self.promoted.event.task.shape), None)
