"""Measures a promoted kernel again and records whether the first measurement holds."""

import dataclasses
from datetime import datetime

from forge.app.incumbent import incumbent_kernel, standing_of
from forge.app.kernels.answers import find_promotion
from forge.app.kernels.decisions import record_decision
from forge.app.machine.chosen_executor import executor_of
from forge.app.machine.process_name import process_sha256
from forge.app.phases.phase_inputs import artifact_of, evidence_of, require_loadable
from forge.app.phases.timing_setups import setup_of
from forge.app.runs.recorded_evidence import captured_environment
from forge.app.runs.states import GATE
from forge.app.stored.policy_file import recorded_policy
from forge.app.workspace import Workspace, now
from forge.domain.environment import Environment
from forge.domain.policy import BaselineKind
from forge.domain.replication import (
    LEAST_APART,
    Occasion,
    ReplicatedSpeedup,
    why_not_comparable,
    why_not_independent,
)
from forge.errors import AlreadyDecided, EnvironmentUnfit, UsageError
from forge.events import BenchmarkRecorded, KernelPromoted, ReplicationRecorded
from forge.executor import Executor, Site
from forge.lab.finding import Failed
from forge.lab.job import Progress
from forge.lab.packages import require_lab
from forge.lab.timing.screening import ContenderScreening
from forge.pipeline import replicate
from forge.pipeline.beside_contenders import beside_contenders
from forge.pipeline.job import job_of, simulated
from forge.pipeline.outcome import Outcome
from forge.pipeline.samples import Samples, Taken
from forge.pipeline.timings import Measured
from forge.projections.fold import holds
from forge.sandbox.isolation import at_least

VERDICTS = {"held": "accepted", "contradicted": "rejected", "inconclusive": "inconclusive"}
"""Outcome of a replication -> the verdict of the command."""
Data = dict[str, object]


def replicate_kernel(workspace: Workspace, name: str, *, progress: Progress) -> Data:
    """Measure a kernel again, record the outcome and publish it; `name` is a kernel's id, or a run that ended in one.

    Raises UsageError if this machine or this moment can't replicate it, AlreadyDecided if it isn't on offer.
    """
    kernel_id = _kernel_id(workspace, name)
    family = kernel_id.rpartition("_v")[0]
    version = workspace.ledger.stream_version(f"kernel:{family}")
    promoted = find_promotion(workspace, kernel_id).event
    _require_on_offer(workspace, promoted)
    executor = executor_of(workspace)
    case = replication_case(workspace, promoted, executor.site(workspace.policy))
    require_occasion(workspace, case)
    require_lab()
    outcome = _measured(workspace, executor, case, progress)
    return record_replication(workspace, outcome, expected=version)


def record_replication(workspace: Workspace, outcome: Outcome, *, expected: int) -> Data:
    """Store what a replication made, record it, sign and publish it; return the answer of the command."""
    (event,) = outcome.events
    assert isinstance(event, ReplicationRecorded)
    for blob in outcome.blobs:
        workspace.blobs.put(blob)
    recorded = record_decision(workspace, event, expected=expected, actor=GATE)
    return {
        "verdict": VERDICTS[event.outcome],
        "outcome": event.outcome,
        "kernel_id": event.kernel_id,
        "candidate": event.candidate,
        "reason": event.reason.model_dump(mode="json") if event.reason else None,
        "benchmark_seq": event.benchmark_seq,
        "baseline_used": event.baseline_used,
        "comparisons": [one.model_dump(mode="json") for one in event.comparisons],
        **recorded,
    }


def replication_case(workspace: Workspace, promoted: KernelPromoted, site: Site) -> replicate.ReplicatedKernel:
    """Return the recorded evidence for a kernel, the machine that measures it again, and earlier replications."""
    run = workspace.find_run(promoted.run_id)
    first = next(workspace.ledger.read(after_seq=promoted.benchmark_seq - 1, limit=1))
    assert holds(first, BenchmarkRecorded), "the registry's fold has checked it"
    policy = recorded_policy(workspace.blobs.get(promoted.policy_sha256))
    return replicate.ReplicatedKernel(
        promoted=promoted,
        first=first,
        evidence=dataclasses.replace(evidence_of(workspace, run, site, attempt=1), policy=policy),
        process_sha256=process_sha256(),
        earlier=earlier_comparisons(workspace, method=first.event.workloads[0].candidate.method),
    )


def earlier_comparisons(workspace: Workspace, *, method: str) -> tuple[ReplicatedSpeedup, ...]:
    """Return the comparisons of all replications by one clock, of any kernel, whatever their outcome was."""
    return tuple(
        comparison
        for recorded in workspace.ledger.read(types=("ReplicationRecorded",))
        if holds(recorded, ReplicationRecorded)
        and any(one.candidate.method == method for one in recorded.event.workloads)
        for comparison in recorded.event.comparisons
    )


def require_occasion(workspace: Workspace, case: replicate.ReplicatedKernel) -> None:
    """Raise UsageError unless a measurement here and now can replicate the first one.

    Raises EnvironmentUnfit if the sandbox here is weaker than the policy of the kernel asks for.
    """
    kernel_id, here = case.promoted.kernel_id, case.evidence.environment
    machine = captured_environment(workspace, case.first.event.env_sha256)
    why = why_not_comparable(machine, here)
    if why is not None:
        raise UsageError(
            f"kernel {kernel_id!r} can't be replicated on this machine: {why}; expected the same processor and "
            "software, on any host",
            hint=f"forge kernel show {kernel_id}",
        )
    first_at = datetime.fromisoformat(case.first.recorded_at)
    first = Occasion(first_at, machine, case.first.event.process_sha256)
    why = why_not_independent(first, Occasion(now(), here, case.process_sha256))
    if why is not None:
        after = f"{first_at + LEAST_APART:%Y-%m-%d %H:%M} UTC"
        raise UsageError(
            f"kernel {kernel_id!r} can't be replicated now: {why}; measure again after {after}, or on "
            "another machine",
            hint=f"forge kernel show {kernel_id}",
        )
    wanted = case.evidence.policy.minimum_isolation
    if not at_least(case.evidence.isolation.level, wanted):
        raise EnvironmentUnfit(
            f"the sandbox here reaches {case.evidence.isolation.level!r}, the kernel's policy asks for {wanted!r}",
            hint="forge doctor",
        )


def _measured(
    workspace: Workspace, executor: Executor, case: replicate.ReplicatedKernel, progress: Progress
) -> Outcome:
    """Time the kernel beside the incumbent that it was first measured beside, and beside all contenders."""
    evidence = case.evidence
    if simulated(evidence):
        raise EnvironmentUnfit(
            f"{case.promoted.kernel_id!r} runs in an interpreter here: expected its target; measure it there"
        )
    artifact = artifact_of(workspace, case.promoted.artifact_sha256)
    require_loadable(case.promoted.run_id, evidence, artifact, _verified_on(workspace, case.promoted))
    then = incumbent_kernel(workspace, case.promoted.family, before_seq=case.first.seq)
    setup = setup_of(workspace, executor, evidence, artifact, to_beat=then, progress=progress)
    job = job_of(evidence)

    def take(screening: ContenderScreening, _: Taken | None) -> Measured | Failed:
        attempt = setup.attempt(job, screening, progress=progress)
        if isinstance(attempt, Failed):
            return attempt
        return setup.measured(job, Samples.of(attempt), screening, claims={})

    screening = with_baseline(executor.screen(job, progress=progress), case.promoted.baseline)
    measured = beside_contenders(screening, None, take, progress=progress)
    if isinstance(measured, Failed):
        return replicate.failed(case, measured.reason, untrusted_log=measured.log)
    return replicate.conclude(case, measured)


def with_baseline(screening: ContenderScreening, baseline: BaselineKind) -> ContenderScreening:
    """Return the screening with the promotion's baseline among those measured in full, if it is a right contender.

    Otherwise a faster contender that wasn't there before would leave nothing to compare the first measurement with.
    """
    if baseline not in {one.name for one in screening.right}:
        return screening
    return screening.beside(screening.chosen | {baseline}) or screening


def _verified_on(workspace: Workspace, promoted: KernelPromoted) -> Environment:
    verified = next(workspace.ledger.read(after_seq=promoted.verified_seq - 1, limit=1)).event
    return captured_environment(workspace, getattr(verified, "env_sha256", promoted.env_sha256))


def _kernel_id(workspace: Workspace, name: str) -> str:
    """Return the kernel that is meant; raise UsageError or RunNotFound."""
    with workspace.publication.tables() as connection:
        if connection.execute("SELECT 1 FROM kernels WHERE kernel_id = ?", (name,)).fetchone():
            return name
    promotion = workspace.find_run(name).promotion
    if promotion is None or not isinstance(promotion.event, KernelPromoted):
        raise UsageError(
            f"run {name!r} promoted no kernel: expected a kernel's id, or a run that ended in one",
            hint="forge kernel list",
        )
    return promotion.event.kernel_id


def _require_on_offer(workspace: Workspace, promoted: KernelPromoted) -> None:
    standing = standing_of(workspace, promoted)
    if standing.status not in ("active", "deprecated"):
        raise AlreadyDecided(
            f"kernel {promoted.kernel_id!r} is {standing.status} ({standing.reason}): expected an "
            "active or deprecated one; to measure it anew, open another run",
            hint=f"forge run open {promoted.task_id}",
        )
