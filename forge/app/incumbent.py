"""Finds a family's incumbent: the kernel that a lookup would offer, now or before an event."""

from collections.abc import Iterator
from itertools import chain

from forge.app.workspace import Workspace
from forge.events import Event, KernelPromoted, Recorded
from forge.ledger.store import Ledger
from forge.projections.standing import Standing, Standings


def incumbent_kernel(workspace: Workspace, family: str, *, before_seq: int | None = None) -> KernelPromoted | None:
    """Return the incumbent: the newest active version of a family in the registry, now or before an event."""
    known = Standings(_said_of_kernels(workspace.ledger, family, before_seq=before_seq))
    return known.newest_active(family, measured=lambda seq: _event_at(workspace.ledger, seq))


def standing_of(workspace: Workspace, kernel: KernelPromoted) -> Standing:
    """Return a kernel's standing after all events recorded so far."""
    known = Standings(_said_of_kernels(workspace.ledger, kernel.family, before_seq=None))
    known.take(_event_at(workspace.ledger, kernel.benchmark_seq))
    return known.of(kernel.kernel_id, kernel.benchmark_seq)


def _said_of_kernels(ledger: Ledger, family: str, *, before_seq: int | None) -> Iterator[Recorded[Event]]:
    """Yield a family's events, and every withdrawal of a benchmark. The benchmarks themselves are read one by one."""
    events = chain(ledger.read(stream=f"kernel:{family}"), ledger.read(types=("BenchmarkInvalidated",)))
    return (one for one in events if before_seq is None or one.seq < before_seq)


def _event_at(ledger: Ledger, seq: int) -> Recorded[Event]:
    return next(ledger.read(after_seq=seq - 1, limit=1))
