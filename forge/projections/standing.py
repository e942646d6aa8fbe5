"""Decides a kernel's standing: the only place that says what ends a kernel, and which ending counts most."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from forge.domain.protocol import protocol_of, why_superseded
from forge.events import (
    BenchmarkInvalidated,
    BenchmarkRecorded,
    Event,
    KernelDeprecated,
    KernelPromoted,
    KernelRevoked,
    Recorded,
    ReplicationRecorded,
)
from forge.projections.fold import holds

Status = Literal["active", "deprecated", "evidence_stale", "not_replicated", "evidence_invalid", "revoked"]
EvidenceState = Literal["provisional", "replicated"]
"""State of a kernel's evidence: a second measurement that counts has held, or none has."""
Ending = (
    Recorded[KernelDeprecated]
    | Recorded[ReplicationRecorded]
    | Recorded[BenchmarkInvalidated]
    | Recorded[KernelRevoked]
)


@dataclass(frozen=True, slots=True)
class Standing:
    """The events about one kernel, or about its benchmark, since it was promoted."""

    deprecated: Recorded[KernelDeprecated] | None = None
    """The latest deprecation."""
    invalidated: Recorded[BenchmarkInvalidated] | None = None
    """The first withdrawal of the benchmark it stands on."""
    revoked: Recorded[KernelRevoked] | None = None
    """The first revocation; it is final."""
    held: Recorded[ReplicationRecorded] | None = None
    """The first replication that held, by a protocol that isn't superseded."""
    contradicted: Recorded[ReplicationRecorded] | None = None
    """The first replication that contradicts the measurement it stands on; it is final."""
    superseded: str | None = None
    """Reason why the protocol of the first measurement no longer counts. None: it counts."""
    has_further_shapes: bool = False
    """Whether the first measurement had further shapes, which a second one doesn't measure."""

    def after(self, recorded: Recorded[Event]) -> "Standing":
        """Return the standing after this event, which is about this kernel."""
        if holds(recorded, KernelDeprecated):
            return replace(self, deprecated=recorded)
        if holds(recorded, BenchmarkInvalidated):
            return replace(self, invalidated=self.invalidated or recorded)
        if holds(recorded, KernelRevoked):
            return replace(self, revoked=self.revoked or recorded)
        if holds(recorded, ReplicationRecorded) and _replicates(recorded.event):
            return replace(self, held=self.held or recorded)
        if holds(recorded, ReplicationRecorded) and recorded.event.outcome == "contradicted":
            return replace(self, contradicted=self.contradicted or recorded)
        return self

    def measured_by(self, benchmark: BenchmarkRecorded) -> "Standing":
        """Return the standing of a kernel that stands on this measurement, by the measurement's protocol."""
        return replace(self, superseded=_why_superseded(benchmark), has_further_shapes=bool(benchmark.further_seqs))

    @property
    def stale(self) -> str | None:
        """Return why the first measurement no longer counts; None if it does, or if a second of all shapes held."""
        return None if self.held and not self.has_further_shapes else self.superseded

    @property
    def ended(self) -> Ending | None:
        """Return the most serious event against it; None without one.

        The order is revoked, invalidated, contradicted, deprecated. No event says that a protocol is superseded.
        """
        return self.revoked or self.invalidated or self.contradicted or self.deprecated

    @property
    def status(self) -> Status:
        """Return the status that follows from `ended` and from the protocol."""
        if self.revoked:
            return "revoked"
        if self.invalidated:
            return "evidence_invalid"
        if self.contradicted:
            return "not_replicated"
        if self.stale:
            return "evidence_stale"
        return "deprecated" if self.deprecated else "active"

    @property
    def evidence(self) -> EvidenceState:
        """Return whether a second measurement held."""
        return "replicated" if self.held else "provisional"

    @property
    def reason(self) -> str | None:
        """Return why the kernel isn't active, as the one who decided said it; None if it is active."""
        if self.revoked:
            return f"{self.revoked.event.severity}: {self.revoked.event.reason}"
        if self.invalidated:
            return self.invalidated.event.why
        if self.contradicted:
            against = self.contradicted.event.reason
            return f"event {self.contradicted.seq} measured it again: {against.message if against else 'no figures'}"
        if self.stale:
            return f"{self.stale}; measure it anew"
        return self.deprecated.event.reason if self.deprecated else None


def _replicates(event: ReplicationRecorded) -> bool:
    return event.outcome == "held" and _why_superseded(event) is None


def _why_superseded(measured: BenchmarkRecorded | ReplicationRecorded) -> str | None:
    whys = (why_superseded(protocol_of(one.protocol, one.candidate.method)) for one in measured.workloads)
    return next((why for why in whys if why is not None), None)


NOTHING_SAID = Standing()
"""Standing of an active kernel: no event since its promotion is about it."""


class Standings:
    """The standing of every kernel and benchmark that the events so far are about."""

    def __init__(self, events: Iterable[Recorded[Event]] = ()) -> None:
        self._promoted: dict[str, KernelPromoted] = {}
        self._kernels: dict[str, Standing] = {}
        self._withdrawn: dict[int, Standing] = {}
        self._measured: dict[int, Standing] = {}
        """What benchmarks alone say of kernels that stand on them, by the benchmark's place."""
        for recorded in events:
            self.take(recorded)

    def take(self, recorded: Recorded[Event]) -> None:
        """Add one event. A kernel's own events come in order; a withdrawal may come before or after them."""
        event = recorded.event
        match event:
            case KernelPromoted():
                self._promoted[event.kernel_id] = event
            case KernelDeprecated() | KernelRevoked() | ReplicationRecorded():
                self._kernels[event.kernel_id] = self._kernels.get(event.kernel_id, NOTHING_SAID).after(recorded)
            case BenchmarkRecorded():
                self._measured[recorded.seq] = NOTHING_SAID.measured_by(event)
            case BenchmarkInvalidated():
                seq = event.benchmark_seq
                self._withdrawn[seq] = self._withdrawn.get(seq, NOTHING_SAID).after(recorded)
            case _:
                pass

    def of(self, kernel_id: str | None, benchmark_seq: int) -> Standing:
        """Return the standing of a kernel that rests on a benchmark, or of the benchmark alone."""
        own = self._kernels.get(kernel_id, NOTHING_SAID) if kernel_id is not None else NOTHING_SAID
        first = self._measured.get(benchmark_seq, NOTHING_SAID)
        return replace(
            own,
            invalidated=self._withdrawn.get(benchmark_seq, NOTHING_SAID).invalidated,
            superseded=first.superseded,
            has_further_shapes=first.has_further_shapes,
        )

    def newest_active(
        self, family: str, *, measured: Callable[[int], Recorded[Event]] | None = None
    ) -> KernelPromoted | None:
        """Return the newest active version of a family, with which a lookup may answer.

        `measured` returns the benchmark at a place, for events without benchmarks. It is asked for each version, from
        the newest to the first that is active.
        """
        of_family = (event for event in self._promoted.values() if event.family == family)
        for event in sorted(of_family, key=lambda one: one.version, reverse=True):
            if measured is not None:
                self.take(measured(event.benchmark_seq))
            if self.of(event.kernel_id, event.benchmark_seq).status == "active":
                return event
        return None
