"""Checks that a replication in the ledger is one: about the kernel's own measurement, comparable and independent."""

from datetime import datetime

from forge.domain.replication import Occasion, why_not_comparable, why_not_independent
from forge.errors import LedgerCorrupt
from forge.events import EnvironmentCaptured, Recorded, ReplicationRecorded
from forge.projections.kernel import PromotedKernel


def require_replication(
    kernel: PromotedKernel, recorded: Recorded[ReplicationRecorded], captured: EnvironmentCaptured | None
) -> None:
    """Raise LedgerCorrupt unless the event replicates the measurement that the kernel stands on."""
    event = recorded.event
    if (event.candidate, event.benchmark_seq) != (kernel.promoted.event.candidate, kernel.benchmark.seq):
        raise _corrupt(recorded, f"measurement {event.benchmark_seq}, which the kernel doesn't stand on")
    if event.policy_sha256 != kernel.promoted.event.policy_sha256:
        raise _corrupt(recorded, f"policy {event.policy_sha256!r}, which isn't that of the promotion")
    if (event.outcome == "held") != (event.reason is None):
        raise _corrupt(recorded, f"outcome {event.outcome!r} with reason {event.reason}")
    if event.outcome == "held" and not (event.workloads and event.comparisons):
        raise _corrupt(recorded, "an outcome that holds without figures")
    if captured is None:
        raise _corrupt(recorded, "a machine that isn't in the ledger")
    first_machine, machine = kernel.environment.event.environment, captured.environment
    first = Occasion(_moment(kernel.benchmark.recorded_at), first_machine, kernel.benchmark.event.process_sha256)
    second = Occasion(_moment(recorded.recorded_at), machine, event.process_sha256)
    why = why_not_comparable(first_machine, machine) or why_not_independent(first, second)
    if why is not None:
        raise _corrupt(recorded, why)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _corrupt(recorded: Recorded[ReplicationRecorded], found: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"event {recorded.seq} replicates {recorded.event.kernel_id!r} but names {found}")
