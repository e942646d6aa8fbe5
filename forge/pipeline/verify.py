"""Has the lab examine a candidate, and turns the result into events.

The order of the gates is `ORDER` in `forge/lab/verification.py`.
"""

from collections.abc import Mapping

from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.evidence import WorkloadErrors
from forge.domain.tensors import Shape
from forge.domain.verdict import Accepted, Rejected
from forge.errors import EnvironmentUnfit
from forge.events import CandidateRejected, CandidateVerified, Event, VerificationErrored
from forge.executor import Executor
from forge.lab.inputs.inside import held_out_inside
from forge.lab.job import Job, Progress
from forge.lab.verification import Examination
from forge.ledger.statements import PAYLOAD_LIMIT_BYTES
from forge.pipeline.job import RecordedCandidate, build_job_of, job_of, listed, pack_artifact
from forge.pipeline.outcome import Outcome, detail_of
from forge.pipeline.recorded_shapes import recorded_errors, recorded_shapes

REUSE_BYTES = 64
"""Room in bytes that an event leaves for what it gains where a later run reuses its judgement: two numbers."""


def verify(evidence: RecordedCandidate, executor: Executor, *, progress: Progress) -> Outcome:
    """Examine the candidate. A fault of the machine gives an event of its own and never counts against it.

    If nothing on this machine can run the candidate, it is screened and built, as far as this machine can. A refusal
    there stands. Otherwise raise EnvironmentUnfit.
    """
    try:
        job = job_of(evidence)
    except EnvironmentUnfit as unfit:
        build = build_job_of(evidence)
        return _outcome(evidence, build, refused_without_running(build, executor, unfit, progress))
    try:
        examined = executor.examine(job, progress=progress)
    except (EnvironmentUnfit, OSError) as error:
        return _errored(evidence, detail_of(error))
    return _outcome(evidence, job, examined)


def refused_without_running(job: Job, executor: Executor, unfit: EnvironmentUnfit, progress: Progress) -> Examination:
    """Screen and build a candidate that can't be run here; return the refusal, or raise EnvironmentUnfit."""
    try:
        examined = executor.examine_build(job, progress=progress)
    except (EnvironmentUnfit, OSError) as error:
        unbuilt = f"{unfit.message}; nor can they be built here: {detail_of(error)}"
        raise EnvironmentUnfit(unbuilt, hint=unfit.hint) from error
    if isinstance(examined.verdict, Accepted):
        done = ", ".join(f"{gate.name} {gate.verdict}" for gate in examined.gates)
        raise EnvironmentUnfit(f"{unfit.message}; as far as this machine can tell: {done}", hint=unfit.hint)
    return examined


def _outcome(evidence: RecordedCandidate, job: Job, examined: Examination) -> Outcome:
    report = _report(evidence, job, examined)
    artifact, artifact_blobs = pack_artifact(examined.artifact)
    blobs = [report, *artifact_blobs]
    if examined.counterexample is not None:
        blobs.append(canonical(examined.counterexample))
    event = _event(evidence, job, examined, artifact=artifact, report_sha256=sha256(report))
    files = {"verification_report.json": report}
    if examined.counterexample is not None:
        files["counterexample.py"] = examined.counterexample.snippet.encode()
    return Outcome(events=(event,), files=files, blobs=tuple(blobs))


def _event(
    evidence: RecordedCandidate, job: Job, examined: Examination, *, artifact: str | None, report_sha256: str
) -> Event:
    if isinstance(examined.verdict, Accepted):
        worst = _worst(examined)
        event = CandidateVerified(
            run_id=evidence.run_id,
            task_id=evidence.task.task_id,
            candidate=evidence.submitted.candidate,
            attempt=evidence.attempt,
            artifact_sha256=artifact,
            workloads=recorded_errors(worst, 0),
            shapes_verified=_public_shapes(evidence, job, examined),
            gates=examined.gates,
            seeds_sha256=sha256(canonical({"seeds": list(examined.seeds)})),
            isolation=evidence.isolation,
            env_sha256=evidence.environment.env_sha256,
            simulated=job.interpreted,
            report_sha256=report_sha256,
            policy_sha256=digest_of(evidence.policy),
            gates_sha256=evidence.gates_sha256,
            domain=job.domain,
            held_out_seed=_drawn_with(evidence, job),
        )
        room = PAYLOAD_LIMIT_BYTES - REUSE_BYTES - len(canonical(event))
        return event.model_copy(update={"workloads": recorded_errors(worst, room)})
    return _rejection(evidence, job, examined, report_sha256=report_sha256)


def _drawn_with(evidence: RecordedCandidate, job: Job) -> int | None:
    """Return the seed of the shapes held out for this candidate alone; it is used up now, so it may be known."""
    return job.seed if evidence.draws_held_out else None


def _rejection(
    evidence: RecordedCandidate, job: Job, examined: Examination, *, report_sha256: str
) -> CandidateRejected:
    assert isinstance(examined.verdict, Rejected)
    counterexample = examined.counterexample
    return CandidateRejected.model_validate(
        {
            "run_id": evidence.run_id,
            "task_id": evidence.task.task_id,
            "candidate": evidence.submitted.candidate,
            "stage": examined.stage,
            "reason": examined.verdict.reason,
            "gates": examined.gates,
            "counterexample_sha256": digest_of(counterexample) if counterexample else None,
            "env_sha256": evidence.environment.env_sha256,
            "gates_sha256": evidence.gates_sha256,
            "report_sha256": report_sha256,
            "simulated": job.interpreted,
            "held_out_seed": _drawn_with(evidence, job),
        }
    )


def _public_shapes(evidence: RecordedCandidate, job: Job, examined: Examination) -> tuple[Shape, ...]:
    """Return the shapes that it passed, without the held-out ones, which stay secret."""
    shapes = {digest_of(errors.shape): errors.shape for errors in examined.workloads}
    held_out = (*evidence.held_out.shapes, *asked_held_out(evidence, job))
    public = [shape for shape in shapes.values() if shape not in held_out]
    return recorded_shapes(public, (evidence.task.shape, *evidence.task.further_shapes))


def asked_held_out(evidence: RecordedCandidate, job: Job) -> tuple[Mapping[str, int], ...]:
    """Return the held-out shapes as the gates asked them, inside the candidate's domain.

    A job asks them behind the task's further shapes, which are public.
    """
    asked = held_out_inside(job.held_out, job.domain, job.shape, job.seed)
    return asked[len(evidence.task.further_shapes) :]


def _worst(examined: Examination) -> tuple[WorkloadErrors, ...]:
    """Return the largest errors of each kind of input, by either measure. The report has all of them."""
    by_kind: dict[str, list[WorkloadErrors]] = {}
    for errors in examined.workloads:
        by_kind.setdefault(errors.inputs, []).append(errors)
    worst: list[WorkloadErrors] = []
    for drawn in by_kind.values():
        nearest = max(drawn, key=lambda errors: errors.bound_used)
        furthest = max(drawn, key=lambda errors: errors.max_relative_error)
        worst += [nearest] if furthest.max_relative_error == nearest.max_relative_error else [nearest, furthest]
    return tuple(worst)


def _report(evidence: RecordedCandidate, job: Job, examined: Examination) -> bytes:
    drawn = {"held_out": [dict(shape) for shape in asked_held_out(evidence, job)]} if evidence.draws_held_out else {}
    return canonical(
        {
            **drawn,
            "candidate": evidence.submitted.candidate,
            "task_id": evidence.task.task_id,
            "attempt": evidence.attempt,
            "verdict": examined.verdict.model_dump(mode="json"),
            "simulated": job.interpreted,
            "stage": examined.stage,
            "gates_sha256": evidence.gates_sha256,
            "findings": [finding.model_dump(mode="json") for finding in examined.findings],
            "gates": [gate.model_dump(mode="json") for gate in examined.gates],
            "workloads": [errors.model_dump(mode="json") for errors in examined.workloads],
            "counterexample": (examined.counterexample.model_dump(mode="json") if examined.counterexample else None),
            "built": listed(examined.artifact),
            "seeds": list(examined.seeds),
            "isolation": evidence.isolation.model_dump(mode="json"),
            "environment": evidence.environment.env_sha256,
            "untrusted_log": examined.log,
            "log_withheld": examined.log_withheld,
        }
    )


def _errored(evidence: RecordedCandidate, detail: str) -> Outcome:
    event = VerificationErrored(
        run_id=evidence.run_id,
        task_id=evidence.task.task_id,
        candidate=evidence.submitted.candidate,
        attempt=evidence.attempt,
        detail=detail[:2000],
        retry_of=evidence.retry_of,
        env_sha256=evidence.environment.env_sha256,
    )
    return Outcome(events=(event,))
