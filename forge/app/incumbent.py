"""Finds a family's incumbent: the kernel that a lookup would offer, now or before an event."""

from itertools import chain

from forge.app.workspace import Workspace
from forge.events import KernelPromoted
from forge.projections.standing import Standing, Standings


def incumbent_kernel(workspace: Workspace, family: str, *, before_seq: int | None = None) -> KernelPromoted | None:
    """Return the incumbent: the newest active version of a family in the registry, now or before an event."""
    return _standings(workspace, family, before_seq=before_seq).newest_active(family)


def standing_of(workspace: Workspace, kernel: KernelPromoted) -> Standing:
    """Return a kernel's standing now."""
    return _standings(workspace, kernel.family, before_seq=None).of(kernel.kernel_id, kernel.benchmark_seq)


def _standings(workspace: Workspace, family: str, *, before_seq: int | None) -> Standings:
    ledger = workspace.ledger
    events = chain(
        ledger.read(stream=f"kernel:{family}"), ledger.read(types=("BenchmarkInvalidated", "BenchmarkRecorded"))
    )
    return Standings(one for one in events if before_seq is None or one.seq < before_seq)
