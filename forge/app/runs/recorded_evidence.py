"""Reads what events name: reports, machines, further shapes. Answers need it as well, which run no phase."""

from forge.app.workspace import Workspace
from forge.domain.environment import Environment
from forge.errors import IntegrityError
from forge.events import (
    BenchmarkInvalidated,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateVerified,
    EnvironmentCaptured,
    Recorded,
    ShapeTimed,
)
from forge.projections.fold import holds


def report_of(workspace: Workspace, event: CandidateVerified | CandidateRejected) -> bytes | None:
    """Return the report that a judgement names, byte for byte."""
    return workspace.blobs.get(event.report_sha256) if event.report_sha256 is not None else None


def invalidated(workspace: Workspace, benchmark_seq: int) -> bool:
    """Return whether a recorded benchmark was withdrawn."""
    return any(
        isinstance(recorded.event, BenchmarkInvalidated) and recorded.event.benchmark_seq == benchmark_seq
        for recorded in workspace.ledger.read(types=("BenchmarkInvalidated",))
    )


def further_shapes_of(workspace: Workspace, benchmark: BenchmarkRecorded) -> tuple[Recorded[ShapeTimed], ...]:
    """Return what a benchmark names of its task's further shapes; raise IntegrityError if it names another event."""
    found = []
    for seq in benchmark.further_seqs:
        (recorded,) = workspace.ledger.read(after_seq=seq - 1, limit=1)
        if not holds(recorded, ShapeTimed):
            raise IntegrityError(
                f"a benchmark names event {seq}: expected an event of type ShapeTimed", hint="forge ledger verify"
            )
        found.append(recorded)
    return tuple(found)


def captured_environment(workspace: Workspace, env_sha256: str) -> Environment:
    """Return the machine that an event names.

    Raises IntegrityError if no event records it.
    """
    for recorded in workspace.ledger.read(stream=f"env:{env_sha256}"):
        if isinstance(recorded.event, EnvironmentCaptured):
            return recorded.event.environment
    raise IntegrityError(
        f"an event names environment {env_sha256!r}: expected an EnvironmentCaptured event that records it",
        hint="forge ledger verify",
    )
