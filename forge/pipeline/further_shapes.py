"""Times a candidate at the further shapes of its task, once it met the promotion rule at the first one.

Each shape is timed by itself, in process pairs of its own, beside its own baselines. What is undecided or too slow
there keeps the kernel from being promoted for that shape alone; a wrong answer refuses the candidate.
"""

from dataclasses import replace
from functools import partial

from forge.domain.digest import digest_of, sha256
from forge.domain.tensors import Shape, shape_text
from forge.domain.verdict import UNDECIDED, Reason
from forge.errors import EnvironmentUnfit
from forge.events import ShapeTimed
from forge.lab.finding import Failed
from forge.lab.job import Progress
from forge.pipeline.benchmark import Errored, measure, measure_with_contenders, meets_the_rule
from forge.pipeline.beside_contenders import beside_contenders
from forge.pipeline.early_stop import Stopped
from forge.pipeline.job import RecordedCandidate, job_of
from forge.pipeline.outcome import Outcome, detail_of
from forge.pipeline.promotion_rule import baseline_used, decide
from forge.pipeline.samples import Taken, render_samples
from forge.pipeline.timing_setup import TimingSetup
from forge.pipeline.timings import Measured, MeasuredShape, workload_timing

_NOISE = "the noise on this machine is larger than the work measured at this shape"
"""Reason for a further shape whose speedup can't be told."""


def at_shape(evidence: RecordedCandidate, shape: Shape) -> RecordedCandidate:
    """Return the evidence as if its task were for this shape alone. No event may name that task."""
    return replace(evidence, task=evidence.task.model_copy(update={"shape": shape, "further_shapes": ()}))


def measure_shapes(setup: TimingSetup, earlier: Taken | None) -> Measured | Failed | Errored | Stopped:
    """Time the candidate as `measure` does; if it meets the rule, time it at each further shape of its task, too."""
    measured = measure(setup, earlier)
    if not (isinstance(measured, Measured) and meets_the_rule(setup.evidence, measured)):
        return measured
    further: list[MeasuredShape] = []
    for shape in setup.evidence.task.further_shapes:
        at, told = at_shape(setup.evidence, shape), partial(_told_at, setup.progress, shape)
        try:
            one = _measured_at(replace(setup, evidence=at, progress=told))
        except (EnvironmentUnfit, OSError) as error:
            return Errored(detail_of(error))
        if isinstance(one.measured, Failed) and one.measured.reason.code not in UNDECIDED:
            return _refused_at(shape, one.measured)
        further.append(one)
    return replace(measured, further=tuple(further))


def _refused_at(shape: Shape, failed: Failed) -> Failed:
    """Return the refusal of a candidate that fails at a further shape."""
    message = f"at {shape_text(shape)}: {failed.reason.message}"
    return replace(failed, reason=Reason(code=failed.reason.code, message=message[:2000]))


def _measured_at(setup: TimingSetup) -> MeasuredShape:
    """Time the candidate at a further shape, that of the setup's task, with launch plans for it."""
    job, shape, incumbent = job_of(setup.evidence), setup.evidence.task.shape, setup.incumbent
    files = setup.executor.artifact_at(job, setup.artifact, progress=setup.progress)
    if isinstance(files, Failed):
        return MeasuredShape(shape, files)
    if incumbent is not None:
        rival = replace(job, files=incumbent.files, entry_point=incumbent.entry_point)
        kept = setup.executor.artifact_at(rival, incumbent.artifact, progress=setup.progress)
        if isinstance(kept, Failed):
            message = f"the promoted kernel can't be timed at this shape: {kept.reason.message}"
            reason = Reason(code="INFRASTRUCTURE", message=message[:2000])
            return MeasuredShape(shape, replace(kept, reason=reason))
        incumbent = replace(incumbent, artifact=kept)
    take = partial(measure_with_contenders, replace(setup, artifact=files, incumbent=incumbent), claims={})
    screening = setup.executor.screen(job, progress=setup.progress)
    timed = beside_contenders(screening, None, take, progress=setup.progress)
    assert not isinstance(timed, Stopped), "a further shape is measured in full"
    return MeasuredShape(shape, timed, files)


def _told_at(progress: Progress, shape: Shape, step: str) -> None:
    progress(f"{shape_text(shape)}: {step}")


def conclude_further(evidence: RecordedCandidate, found: tuple[MeasuredShape, ...], *, verified_seq: int) -> Outcome:
    """Compare the samples of each further shape with the promotion rule: one ShapeTimed for each."""
    outcomes = [_concluded(evidence, one, verified_seq=verified_seq) for one in found]
    return Outcome(
        events=tuple(event for event, _ in outcomes), blobs=tuple(blob for _, blobs in outcomes for blob in blobs)
    )


def _concluded(
    evidence: RecordedCandidate, one: MeasuredShape, *, verified_seq: int
) -> tuple[ShapeTimed, tuple[bytes, ...]]:
    """Return the event of one shape, and the blobs that it names."""
    event = ShapeTimed(
        run_id=evidence.run_id,
        task_id=evidence.task.task_id,
        candidate=evidence.submitted.candidate,
        attempt=evidence.attempt,
        shape=one.shape,
        timing=None,
        baseline_used=None,
        reason=None,
        samples_sha256=None,
        isolation=evidence.isolation,
        env_sha256=evidence.environment.env_sha256,
        verified_seq=verified_seq,
        policy_sha256=digest_of(evidence.policy),
        process_sha256=evidence.process_sha256,
    )
    if isinstance(one.measured, Failed):
        return event.model_copy(update={"reason": one.measured.reason}), ()
    raw = render_samples(one.measured.samples, one.measured.confirmation)
    named = {"samples_sha256": sha256(raw), "contenders": one.measured.contenders}
    if not one.measured.usable:
        reason = Reason(code="NOISE_TOO_HIGH", message=_NOISE)
        return event.model_copy(update={**named, "reason": reason}), (raw,)
    timing = workload_timing(one.shape, one.measured, samples_sha256=sha256(raw))
    used = baseline_used(evidence.task, timing)
    against = decide(evidence.task, evidence.policy, timing, used)
    decided = {**named, "timing": timing, "baseline_used": used, "reason": against}
    return event.model_copy(update=decided), (raw, *(file.content for file in one.artifact))
