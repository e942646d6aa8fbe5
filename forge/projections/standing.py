"""Decides a kernel's standing: the only place that says what ends a kernel, and which ending counts most."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from forge.events import BenchmarkInvalidated, Event, KernelDeprecated, KernelPromoted, KernelRevoked, Recorded
from forge.projections.fold import holds

Status = Literal["active", "deprecated", "evidence_invalid", "revoked"]


@dataclass(frozen=True, slots=True)
class Standing:
    """The events about one kernel, or about its benchmark, since it was promoted."""

    deprecated: Recorded[KernelDeprecated] | None = None
    """The latest deprecation."""
    invalidated: Recorded[BenchmarkInvalidated] | None = None
    """The first withdrawal of the benchmark it stands on."""
    revoked: Recorded[KernelRevoked] | None = None
    """The first revocation; it is final."""

    def after(self, recorded: Recorded[Event]) -> "Standing":
        """Return the standing after this event, which is about this kernel."""
        if holds(recorded, KernelDeprecated):
            return replace(self, deprecated=recorded)
        if holds(recorded, BenchmarkInvalidated):
            return replace(self, invalidated=self.invalidated or recorded)
        if holds(recorded, KernelRevoked):
            return replace(self, revoked=self.revoked or recorded)
        return self

    @property
    def ended(self) -> Recorded[KernelDeprecated] | Recorded[BenchmarkInvalidated] | Recorded[KernelRevoked] | None:
        """Return the gravest event against it: revoked > invalidated > deprecated; None if it is active."""
        return self.revoked or self.invalidated or self.deprecated

    @property
    def status(self) -> Status:
        """Return the status that follows from `ended`."""
        if self.revoked:
            return "revoked"
        if self.invalidated:
            return "evidence_invalid"
        return "deprecated" if self.deprecated else "active"

    @property
    def reason(self) -> str | None:
        """Return why it isn't active, in the words of the event behind `status`."""
        if self.revoked:
            return f"{self.revoked.event.severity}: {self.revoked.event.reason}"
        if self.invalidated:
            return self.invalidated.event.why
        return self.deprecated.event.reason if self.deprecated else None


NOTHING_SAID = Standing()
"""Standing of an active kernel: no event since its promotion is about it."""


class Standings:
    """The standing of every kernel and benchmark that the events so far are about."""

    def __init__(self, events: Iterable[Recorded[Event]] = ()) -> None:
        self._promoted: dict[str, KernelPromoted] = {}
        self._kernels: dict[str, Standing] = {}
        self._withdrawn: dict[int, Standing] = {}
        for recorded in events:
            self.take(recorded)

    def take(self, recorded: Recorded[Event]) -> None:
        """Add one event. A kernel's own events come in order; a withdrawal may come before or after them."""
        event = recorded.event
        match event:
            case KernelPromoted():
                self._promoted[event.kernel_id] = event
            case KernelDeprecated() | KernelRevoked():
                self._kernels[event.kernel_id] = self._kernels.get(event.kernel_id, NOTHING_SAID).after(recorded)
            case BenchmarkInvalidated():
                seq = event.benchmark_seq
                self._withdrawn[seq] = self._withdrawn.get(seq, NOTHING_SAID).after(recorded)
            case _:
                pass

    def of(self, kernel_id: str | None, benchmark_seq: int) -> Standing:
        """Return the standing of a kernel that rests on a benchmark, or of the benchmark alone."""
        own = self._kernels.get(kernel_id, NOTHING_SAID) if kernel_id is not None else NOTHING_SAID
        return replace(own, invalidated=self._withdrawn.get(benchmark_seq, NOTHING_SAID).invalidated)

    def newest_active(self, family: str) -> KernelPromoted | None:
        """Return the newest active version of a family, with which a lookup may answer."""
        active = (
            event
            for event in self._promoted.values()
            if event.family == family and self.of(event.kernel_id, event.benchmark_seq).status == "active"
        )
        return max(active, key=lambda event: event.version, default=None)
