"""Judges a candidate's launch plan, since what will be timed must also be correct.

The plan is launched on inputs of every kind that the candidate's process never saw. On one question its answer must
equal the calls' answer bit for bit, unless those differ among themselves.
"""

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import END_KINDS, InputKind
from forge.domain.plan import KernelLaunch, LaunchPlan, NoPlan
from forge.domain.policy import MeasuredBaseline
from forge.domain.verdict import Reason
from forge.lab.baselines import baseline_function, baseline_program, compiled_folder
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import Placement
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates.difference import equal
from forge.lab.gates.listed_workloads import check_repeated, repeats
from forge.lab.gates.scales import KINDS as SCALES
from forge.lab.gates.specials import KINDS as SPECIALS
from forge.lab.job import Job
from forge.lab.launch_plan.capture import capture
from forge.lab.launch_plan.launcher import artifact_files, launched
from forge.lab.launch_plan.tuning import measured_configurations
from forge.lab.observed import Observed
from forge.sandbox.plans import Captured
from forge.sandbox.reply import ArtifactFile
from forge.sandbox.stage import Stage

CALLS_OF_EACH = 3
"""Number of times the calls and the launches are asked the same question. Chosen; a race that shows in half of the
calls stays hidden in three equal ones with a chance of 0.25."""
DRAWN_IN_FULL = 6
"""Number of kinds of values, drawn at random, that are drawn for every row. Chosen; 4,096 rows of 4,096 take 0.3 s to
draw."""
WITH_INPUTS = Placement(return_inputs=True)
"""Placement that returns the inputs for a comparison, since launches may write where no call did."""
THRESHOLD = "right without the candidate's host code, and the same as its calls"
"""Words for what the question `plan` allows."""


def examine_plan(job: Job, files: dict[str, bytes]) -> tuple[Finding, tuple[ArtifactFile, ...]]:
    """Capture, launch and compare.

    Also return the files to keep: the plan and its device code, if there is a plan.
    """
    limits = job.limits(job.policy.verify_limit_s)
    with staged(job, files, {}) as stage, loaded(job, stage, limits, label="plan") as kernel:
        if isinstance(kernel, Failed):
            return kernel, ()
        first = kernel.check([kernel.case(job.shape)])
        if isinstance(first, Failed):
            return first, ()
        tuned = measured_configurations(kernel)
        if isinstance(tuned, Failed):
            return tuned, ()
        captured = capture(job, kernel)
        match captured:
            case Failed():
                return captured, ()
            case NoPlan(kind=kind, detail=detail):
                return NotAsked(observed=f"no launch plan ({kind}): {detail[:200]}", threshold=THRESHOLD), tuned
            case Captured():
                unfit = _reference_unfit(job)
                if unfit is not None:
                    return NotAsked(observed=f"no launch plan (reference): {unfit[:200]}", threshold=THRESHOLD), tuned
                with launched(job, captured, limits) as launcher:
                    finding = launcher if isinstance(launcher, Failed) else _compare(kernel, launcher, captured.plan)
                return finding, (*tuned, *artifact_files(captured)) if isinstance(finding, Passed) else ()


def _reference_unfit(job: Job) -> str | None:
    """Return why a reference file's own calls can't be replayed, so that no plan is timed beside them.

    Return None if they can be replayed.
    """
    if job.definition.runs_here:
        return None
    unfit = (_why_unfit(_listed_baseline(job, kind), kind) for kind in job.baselines)
    return next((why for why in unfit if why is not None), None)


def _why_unfit(listed: Captured | NoPlan | Failed, kind: MeasuredBaseline) -> str | None:
    match listed:
        case Failed(reason=reason):
            return f"{kind}: {reason.message}"
        case NoPlan(kind="capture_failed", detail=detail):
            return f"{kind}: {detail}"
        case _:
            return None


def _listed_baseline(job: Job, kind: MeasuredBaseline) -> Captured | NoPlan | Failed:
    stage = Stage(baseline_program(job, compiled_folder(job)), job.isolation)
    function = baseline_function(job, kind)
    try:
        with loaded(job, stage, job.limits(job.policy.verify_limit_s), function, label="plan") as kernel:
            if isinstance(kernel, Failed):
                return kernel
            called = kernel.call([kernel.case(kernel.shape)])
            return called if isinstance(called, Failed) else capture(job, kernel)
    finally:
        stage.remove()


def _compare(calls: LoadedKernel, launcher: LoadedKernel, plan: LaunchPlan) -> Finding:
    errors: list[WorkloadErrors] = []
    kinds = _kinds(launcher)
    in_full = launcher.rng.sample(kinds, min(DRAWN_IN_FULL, len(kinds)))
    for kind in kinds:
        checked = _check(launcher, kind, in_full=kind in in_full)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    same = _same_bits(calls, launcher)
    if isinstance(same, Failed):
        return same
    return Passed(
        observed=f"{_described(plan)}; {len(errors)} kinds of values right; {same}",
        threshold=THRESHOLD,
        errors=tuple(errors),
    )


def _check(launcher: LoadedKernel, kind: InputKind, *, in_full: bool) -> tuple[WorkloadErrors, ...] | Failed:
    """Ask the launches with values of a kind; a few drawn rows repeat if drawing all would take long."""
    if in_full or not repeats(launcher, launcher.shape):
        return launcher.check([launcher.case(launcher.shape, kind)], placement=WITH_INPUTS)
    return check_repeated(launcher, launcher.shape, (kind,), placement=WITH_INPUTS)


def _kinds(kernel: LoadedKernel) -> tuple[InputKind, ...]:
    specials = () if kernel.operation.specials == "unspecified" else SPECIALS
    return kernel.definition.kinds(("normal", "uniform", *SCALES, *END_KINDS, "integers", *specials))


def _same_bits(calls: LoadedKernel, launcher: LoadedKernel) -> str | Failed:
    """Ask one question several times of the calls and of the launches; return in words whether the answers agree."""
    case = launcher.case(launcher.shape)
    answers: list[list[Observed]] = []
    for kernel in (calls, launcher):
        answers.append([])
        for _ in range(CALLS_OF_EACH):
            answer = kernel.call([case])
            if isinstance(answer, Failed):
                return answer
            answers[-1].append(answer[0])
    called, launch = answers
    if any(equal(one, other) for one in called for other in launch):
        return "the same bits as the calls"
    if not all(equal(one, same[0]) for same in answers for one in same):
        return "other bits than the calls, but these differ among themselves"
    message = "the captured launches compute something else than the same function's calls"
    return Failed(reason=Reason(code="TAMPERING", message=message), observed=message, threshold=THRESHOLD)


def _described(plan: LaunchPlan) -> str:
    kernels = sum(isinstance(step, KernelLaunch) for step in plan.steps)
    others = len(plan.steps) - kernels
    parts = [f"{kernels} kernel{'s' if kernels != 1 else ''}"]
    if others:
        parts.append(f"{others} fills and copies")
    if plan.workspaces:
        parts.append(f"{sum(plan.workspaces)} bytes of workspace")
    return ", ".join(parts)
