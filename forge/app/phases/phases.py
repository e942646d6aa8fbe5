"""Moves a run forward, one phase at a time: loads recorded evidence, calls the phase, records its events."""

from pathlib import Path
from typing import assert_never

from forge.app.incumbent import incumbent_kernel
from forge.app.machine.chosen_executor import executor_of
from forge.app.phases import repeated
from forge.app.phases.phase_inputs import (
    earlier_judgement,
    earlier_samples,
    evidence_of,
    judged_before,
)
from forge.app.phases.timing_setups import verified_setup
from forge.app.runs.recorded_evidence import captured_environment, further_shapes_of, invalidated, report_of
from forge.app.runs.states import GATE, finish_phase, require_state, task_of
from forge.app.stored.conflicts import naming_the_first
from forge.app.tasks.briefs import prepare
from forge.app.tasks.operation_description import describe
from forge.app.workspace import Workspace
from forge.domain.another_run import IN_ANOTHER_RUN
from forge.domain.digest import digest_of, sha256
from forge.errors import ConcurrencyConflict, PhaseOutOfOrder
from forge.events import CandidateRejected, Event, KernelPromoted, PromotionDenied
from forge.lab.finding import Failed
from forge.lab.job import Progress
from forge.lab.packages import require_lab
from forge.pipeline import benchmark, claims, promote, reused_judgement, submit, verify
from forge.pipeline.benchmark import Errored
from forge.pipeline.early_stop import Stopped
from forge.pipeline.further_shapes import conclude_further, measure_shapes
from forge.pipeline.held_out import gets_feedback
from forge.pipeline.job import RecordedCandidate
from forge.pipeline.samples import render_samples
from forge.pipeline.timings import Measured
from forge.projections.runs import RunState


def submit_candidate(
    workspace: Workspace, run: RunState, folder: Path, *, author: str | None, actor: str | None = None
) -> Event:
    """Take a candidate in; return CandidateSubmitted or CandidateRejected.

    `actor` is who submits it. Default: the person at the command line.
    """
    if run.state == "planned":
        prepare(workspace, run)
        run = workspace.find_run(run.run_id)
    stands = repeated.submission(run, folder, author=author or workspace.actor)
    if stands is not None:
        return stands
    require_state(run, "prompt_ready", phase="submit")
    outcome = submit.submit(
        folder,
        task=task_of(run),
        run_id=run.run_id,
        untrusted_author=author or workspace.actor,
        judged_before=judged_before(workspace, run.task_id),
    )
    key = f"submit:{run.run_id}:{run.attempts.submit + 1}"
    workspace.record(outcome, run_id=run.run_id, key=key, causation_id=_cause(run), actor=actor)
    return outcome.events[0]


def verify_candidate(workspace: Workspace, run: RunState, *, progress: Progress, again: bool = False) -> Event:
    """Let the lab judge the submitted candidate; return CandidateVerified, CandidateRejected or VerificationErrored.

    An earlier judgement under the same conditions is reused, unless `again` is given.
    """
    recorded = repeated.judgement(run, again=again)
    if recorded is not None:
        return recorded
    require_state(run, "candidate_ready", phase="verify")
    require_lab()
    executor = executor_of(workspace)
    evidence = evidence_of(workspace, run, executor.site(workspace.policy), attempt=run.attempts.verify + 1)
    stands = None if again else earlier_judgement(workspace, evidence)
    if stands is not None:
        outcome = reused_judgement.take_over(evidence, stands, report_of(workspace, stands.event))
    else:
        outcome = verify.verify(evidence, executor, progress=progress)
    key = f"verify:{run.run_id}:{evidence.attempt}"
    workspace.record(outcome, run_id=run.run_id, key=key, causation_id=_cause(run), actor=GATE)
    event = outcome.events[0]
    if isinstance(event, CandidateRejected):
        finish_phase(workspace, workspace.find_run(run.run_id))
    return event


def benchmark_candidate(workspace: Workspace, run: RunState, *, progress: Progress) -> Event:
    """Let the lab time the verified candidate; return BenchmarkRecorded, BenchmarkFailed or BenchmarkErrored."""
    recorded = repeated.timing(run)
    if recorded is not None:
        return recorded
    require_state(run, "verified", phase="bench")
    _require_open_question(run)
    require_lab()
    to_beat = incumbent_kernel(workspace, task_of(run).family)
    setup = verified_setup(workspace, run, to_beat=to_beat, progress=progress)
    evidence = setup.evidence
    measured = measure_shapes(setup, earlier_samples(workspace, run, evidence.environment))
    key = f"bench:{run.run_id}:{evidence.attempt}"
    if isinstance(measured, Measured | Stopped) and incumbent_kernel(workspace, evidence.task.family) != to_beat:
        measured = Errored(
            "meanwhile another kernel of the family was promoted or withdrawn: measure again, beside it"
        )
    return _record_benchmark(workspace, run, evidence, measured, key)


def _require_open_question(run: RunState) -> None:
    """Raise PhaseOutOfOrder if more samples of this run can't decide, as its last benchmark said."""
    failed = run.failure.event.reason.message if run.failure else ""
    if failed.endswith(IN_ANOTHER_RUN):
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} can't be decided by another attempt: {IN_ANOTHER_RUN}",
            hint=f"forge run open {run.task_id}",
        )


def _record_benchmark(
    workspace: Workspace,
    run: RunState,
    evidence: RecordedCandidate,
    measured: Measured | Failed | Errored | Stopped,
    key: str,
) -> Event:
    """Record what came of a measurement, and return the event that ends the phase."""
    assert run.verified is not None
    match measured:
        case Errored():
            outcome = benchmark.errored(evidence, measured)
        case Failed(reason=reason, log=log):
            outcome = benchmark.failed(evidence, reason, verified_seq=run.verified.seq, untrusted_log=log)
        case Stopped():
            _record_claims(workspace, run, evidence, measured.claims, key)
            outcome = benchmark.conclude_stopped(evidence, measured, verified_seq=run.verified.seq)
        case Measured():
            return _record_times(workspace, run, evidence, measured, key)
        case _:
            assert_never(measured)
    workspace.record(outcome, run_id=run.run_id, key=key, causation_id=_cause(run), actor=GATE)
    finish_phase(workspace, workspace.find_run(run.run_id))
    return outcome.events[0]


def _record_times(
    workspace: Workspace, run: RunState, evidence: RecordedCandidate, measured: Measured, key: str
) -> Event:
    """Record further shapes, baselines and claims, and then the benchmark, which names their events."""
    assert run.verified is not None
    further_seqs: tuple[int, ...] = ()
    if measured.further:
        shapes = conclude_further(evidence, measured.further, verified_seq=run.verified.seq)
        # as for the baselines below: the digest keeps a repeated measurement apart
        named = f"{key}:shapes:{digest_of([one.model_dump(mode='json') for one in shapes.events])}"
        recorded = workspace.record(shapes, run_id=run.run_id, key=named, actor=GATE)
        further_seqs = tuple(range(recorded.first_seq, recorded.last_seq + 1))
    timed = benchmark.baselines(evidence, measured)
    baseline_seqs: tuple[int, ...] = ()
    if timed.events:
        # the key contains the samples' digest: after a crash the attempt is measured again, which gives other events
        measurement = sha256(render_samples(measured.samples, measured.confirmation))
        appended = workspace.record(timed, run_id=run.run_id, key=f"{key}:baselines:{measurement}", actor=GATE)
        baseline_seqs = tuple(range(appended.first_seq, appended.last_seq + 1))
    _record_claims(workspace, run, evidence, measured.claims, key)
    outcome = benchmark.conclude(
        evidence,
        measured,
        verified_seq=run.verified.seq,
        baseline_seqs=baseline_seqs,
        further_seqs=further_seqs,
    )
    workspace.record(outcome, run_id=run.run_id, key=key, causation_id=_cause(run), actor=GATE)
    finish_phase(workspace, workspace.find_run(run.run_id))
    return outcome.events[0]


def _record_claims(
    workspace: Workspace, run: RunState, evidence: RecordedCandidate, claimed: dict[str, float], key: str
) -> None:
    """Record the numbers that the candidate's bench.py printed, once."""
    said = claims.own_bench_claims(
        claimed,
        run_id=run.run_id,
        candidate=evidence.submitted.candidate,
        family=evidence.task.family,
        attempt=evidence.attempt,
    )
    if said and not {claim.event.claim_id for claim in run.claims} & {claim.claim_id for claim in said}:
        workspace.append(said, run_id=run.run_id, key=f"{key}:claims")


def promote_candidate(workspace: Workspace, run: RunState) -> KernelPromoted | PromotionDenied:
    """Apply the policy to the recorded evidence, and record the decision."""
    recorded = repeated.decision(run)
    if recorded is not None:
        return recorded
    require_state(run, "benchmarked", phase="promote")
    while (event := _decided(workspace, run)) is None:
        pass
    # sealing writes promotion.json from the event, so a refused promotion leaves no file
    workspace.seal(run.run_id, "promoted" if isinstance(event, KernelPromoted) else "denied")
    return event


def _decided(workspace: Workspace, run: RunState) -> KernelPromoted | PromotionDenied | None:
    """Record the decision; return None if another run of the family was decided meanwhile, which may change it."""
    assert run.benchmark is not None, "a benchmarked run has one"
    stream = f"kernel:{task_of(run).family}"
    version_before = workspace.ledger.stream_version(stream)
    case = _promotion_case(workspace, run)
    earlier = sum(isinstance(recorded.event, KernelPromoted) for recorded in workspace.ledger.read(stream=stream))
    event = promote.promote(case, earlier_versions=earlier)
    key = f"promote:{run.run_id}"
    try:
        if isinstance(event, KernelPromoted):
            describe(workspace, event.task.op, actor=GATE)
        with naming_the_first(workspace.ledger, run_id=run.run_id, key=key):
            workspace.ledger.append(
                (event,),
                actor=GATE,
                correlation_id=run.run_id,
                causation_id=run.benchmark.event_id,
                idempotency_key=key,
                expected={stream: version_before},
            )
    except ConcurrencyConflict:
        return None
    return event


def _promotion_case(workspace: Workspace, run: RunState) -> promote.PromotionEvidence:
    """Return what is recorded about a benchmarked run, and the incumbent; store the policy that decides."""
    assert run.submitted is not None
    assert run.verified is not None
    assert run.benchmark is not None
    task = task_of(run)
    workspace.keep_policy()
    measured_beside = incumbent_kernel(workspace, task.family, before_seq=run.benchmark.seq)
    current = incumbent_kernel(workspace, task.family)
    return promote.PromotionEvidence(
        run_id=run.run_id,
        task=task,
        submitted=run.submitted.event,
        verified=run.verified,
        benchmark=run.benchmark,
        benchmark_invalidated=invalidated(workspace, run.benchmark.seq),
        measured_beside=measured_beside.kernel_id if measured_beside else None,
        incumbent=current.kernel_id if current else None,
        environment=captured_environment(workspace, run.benchmark.event.env_sha256),
        skills=tuple(skill.id for skill in run.plan.event.skills) if run.plan else (),
        policy=workspace.policy,
        further=further_shapes_of(workspace, run.benchmark.event),
        draws_held_out=gets_feedback(run.submitted),
    )


def _cause(run: RunState) -> str:
    last = run.benchmark or run.verified or run.submitted or run.prompt or run.started
    return last.event_id
