"""Checks that a promotion in the ledger is one: of the bytes that were judged, in their run, with their figures."""

from collections.abc import Iterator

import orjson

from forge.domain.candidate import Candidate
from forge.errors import LedgerCorrupt
from forge.events import EnvironmentCaptured, Event, KernelPromoted, Recorded
from forge.events.verify import CandidateVerified
from forge.projections.fold import Source, holds
from forge.projections.kernel import PromotedKernel
from forge.projections.state import State


def require_promotion(kernel: PromotedKernel, machine: Recorded[Event] | None, source: Source) -> None:
    """Raise LedgerCorrupt unless the promotion agrees with its evidence.

    `machine` is the event of the verification's machine.
    """
    unjudged = _why_no_judgement(kernel, machine, source)
    elsewhere = (*_another_machine(kernel), *_another_gpu(kernel, machine))
    for found in (*_another_identity(kernel), *unjudged, *elsewhere, *_beyond(kernel)):
        raise corrupt(kernel.promoted, found)
    if kernel.promoted_point is None:
        raise corrupt(kernel.promoted, f"no measurement at its own shape against {kernel.promoted.event.baseline!r}")
    if _figures_shown(kernel) != _figures_measured(kernel):
        raise corrupt(kernel.promoted, f"figures other than those of event {kernel.benchmark.seq}")


def corrupt(recorded: Recorded[KernelPromoted], found: str) -> LedgerCorrupt:
    """Return the error for a promotion that names what its evidence doesn't support."""
    return LedgerCorrupt(f"event {recorded.seq} promotes {recorded.event.kernel_id!r} but names {found}")


def _another_identity(kernel: PromotedKernel) -> Iterator[str]:
    """Yield what the promotion names of another candidate, run, task or policy than its evidence."""
    event, verified, benchmark = kernel.promoted.event, kernel.verified.event, kernel.benchmark.event
    if not event.candidate == verified.candidate == benchmark.candidate:
        yield "evidence about another candidate"
    bytes_named = Candidate(files=event.files, language=event.task.language, entry_point=event.entry_point)
    if bytes_named.sha256 != event.candidate:
        yield f"files and an entry point that aren't those of candidate {event.candidate!r}"
    if event.artifact_sha256 != verified.artifact_sha256:
        yield f"artifact {event.artifact_sha256!r}, expected {verified.artifact_sha256!r}, which was verified"
    if event.task.task_id != event.task_id:
        yield f"task {event.task_id!r}, but its content gives {event.task.task_id!r}"
    for name in ("run_id", "task_id", "policy_sha256"):
        own = getattr(event, name)
        for recorded in (kernel.verified, kernel.benchmark):
            if getattr(recorded.event, name) != own:
                yield f"event {recorded.seq}, which has another {name} than {own!r}"
    if benchmark.verified_seq != event.verified_seq:
        yield "a benchmark that stands on another verification"


def _another_machine(kernel: PromotedKernel) -> Iterator[str]:
    """Yield what the promotion says of another machine than the one that was timed; a lookup goes by these keys."""
    event = kernel.promoted.event
    if event.env_sha256 != kernel.benchmark.event.env_sha256:
        yield "another machine than its benchmark"
    machine = kernel.environment.event.environment
    if (event.perf_key, event.abi_key) != (machine.perf_key, machine.abi_key):
        yield f"a perf_key or abi_key that isn't that of its machine, event {kernel.environment.seq}"


def _another_gpu(kernel: PromotedKernel, judged_on: Recorded[Event] | None) -> Iterator[str]:
    """Yield each machine of the evidence that hasn't the GPU of the task; a task for a processor needs none."""
    wanted = kernel.promoted.event.task.target.gpu
    for machine in (judged_on, kernel.environment):
        if wanted != "cpu" and holds(machine, EnvironmentCaptured):
            gpu = machine.event.environment.gpu
            if gpu is None or gpu.slug != wanted:
                yield f"a machine with the GPU {gpu and gpu.slug!r}, event {machine.seq}, for a task on {wanted!r}"


def _beyond(kernel: PromotedKernel) -> Iterator[str]:
    """Yield what the promotion covers beyond its evidence."""
    event, verified = kernel.promoted.event, kernel.verified.event
    measured_shapes = [workload.shape for workload in kernel.benchmark.event.workloads]
    measured_shapes += [one.event.shape for one in kernel.further if one.event.timing and one.event.reason is None]
    if not all(shape in verified.shapes_verified for shape in event.coverage.verified):
        yield "coverage beyond the shapes verified"
    if not all(shape in measured_shapes for shape in event.coverage.measured):
        yield "coverage beyond the shapes measured"
    if event.domain != verified.domain:
        yield "another domain than the one verified"


def _figures_shown(kernel: PromotedKernel) -> tuple[object, ...]:
    event = kernel.promoted.event
    return event.speedup, event.candidate_median_ns, event.baseline_median_ns


def _figures_measured(kernel: PromotedKernel) -> tuple[object, ...]:
    point = kernel.promoted_point
    assert point is not None, "the caller has checked it"
    return point.speedup.interval, point.candidate_median_ns, point.speedup.baseline_median_ns


def _why_no_judgement(kernel: PromotedKernel, machine: Recorded[Event] | None, source: Source) -> Iterator[str]:
    """Yield what the promotion names that judges nothing: a gate that failed, or a reused judgement that differs."""
    promotion, verified = kernel.promoted.event, kernel.verified.event
    if verified.simulated:
        yield "a simulated verification, which can't be promoted"
    for named, gates in (("its own", promotion.gates), (f"event {kernel.verified.seq}'s", verified.gates)):
        failed = [gate.name for gate in gates if gate.verdict == "failed"]
        if failed:
            yield f"{named} gate {failed[0]!r}, which failed"
    if all(gate.verdict != "passed" for gate in verified.gates):
        yield f"event {kernel.verified.seq}, in which no gate passed"
    if not holds(machine, EnvironmentCaptured) or machine.seq > kernel.verified.seq:
        yield f"a verification on machine {verified.env_sha256!r}, which isn't in the ledger before it"
    yield from _another_reused(kernel.verified, source)


def _another_reused(verified: Recorded[CandidateVerified], source: Source) -> Iterator[str]:
    """Yield a complaint unless a reused judgement repeats an earlier one of the same bytes word for word."""
    event, seq = verified.event, verified.event.reused_seq
    if seq is None:
        return
    earlier = source.event_at(seq) if 0 < seq < verified.seq else None
    own = {"run_id": event.run_id, "attempt": event.attempt, "reused_seq": seq}
    if not holds(earlier, CandidateVerified) or earlier.event.reused_seq is not None:
        yield f"event {verified.seq}, which reuses event {seq}: that is no judgement of its own before it"
    elif earlier.event.model_copy(update=own) != event:
        yield f"event {verified.seq}, which reuses event {seq} and says something else"


def require_run(state: State, recorded: Recorded[KernelPromoted]) -> None:
    """Raise LedgerCorrupt unless the run that a promotion names led to it; the run's row has this event already."""
    event = recorded.event
    run, handed_in = state.get("runs", event.run_id), state.get("trials", event.run_id)
    if run is None or handed_in is None:
        raise corrupt(recorded, f"run {event.run_id!r}, in which nothing was submitted")
    if run["promote_attempts"] != 1 or run["sealed"]:
        raise corrupt(recorded, f"run {event.run_id!r}, which had been decided before")
    if event.candidate != handed_in["candidate"]:
        raise corrupt(recorded, f"candidate {event.candidate!r}, but its run submitted {handed_in['candidate']!r}")
    if event.author != handed_in["author"]:
        raise corrupt(recorded, f"author {event.author!r}, expected {handed_in['author']!r}, who submitted it")
    planned = tuple(skill["id"] for skill in orjson.loads(str(run["skills"])))
    if event.skills != planned:
        raise corrupt(recorded, f"skills {event.skills}, expected {planned} by the run's plan")
