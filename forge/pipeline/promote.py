"""Applies the policy to the recorded evidence, and to nothing else.

It uses no live result, no file and no clock. The kernel's version is the next number of its family.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forge.domain.contender import missing
from forge.domain.digest import digest_of
from forge.domain.environment import Environment
from forge.domain.evidence import Coverage, GateResult, Speedup
from forge.domain.policy import Policy
from forge.domain.task import Task
from forge.domain.tensors import Shape, shape_text
from forge.domain.verdict import Reason, ReasonCode
from forge.events import (
    BenchmarkRecorded,
    CandidateSubmitted,
    CandidateVerified,
    KernelPromoted,
    PromotionDenied,
    Recorded,
    ShapeTimed,
)
from forge.pipeline.promotion_rule import (
    Met,
    NotMet,
    PromotionTerms,
    RuleResult,
    against_shape,
    check_confirmation,
    check_resident,
    check_timing,
    clock_is_accepted,
    fastest,
    rule_result,
    wanted_clock,
)
from forge.projections.kernel import speedup_of
from forge.sandbox.isolation import at_least


@dataclass(frozen=True, kw_only=True)
class PromotionEvidence:
    """The recorded evidence for one candidate."""

    run_id: str
    task: Task
    submitted: CandidateSubmitted
    verified: Recorded[CandidateVerified]
    benchmark: Recorded[BenchmarkRecorded]
    benchmark_invalidated: bool
    measured_beside: str | None
    """Id of the family's incumbent when the benchmark was recorded. None: there was none."""
    incumbent: str | None
    """Id of the family's incumbent now. None: there is none."""
    environment: Environment
    """Machine that the benchmark names."""
    skills: tuple[str, ...]
    policy: Policy
    further: tuple[Recorded[ShapeTimed], ...] = ()
    """What the benchmark names of the task's further shapes, in its order."""
    draws_held_out: bool = False
    """Whether shapes must have been held out for this candidate alone, since its author gets feedback."""

    @property
    def speedup(self) -> Speedup:
        """The speedup over the baseline that had to be beaten."""
        return speedup_of(self.benchmark.event.workloads[0], self.benchmark.event.baseline_used)

    @property
    def confirmed(self) -> Speedup:
        """The speedup by the confirmation, without selection bias; that of `speedup` if nothing was confirmed."""
        first = self.benchmark.event.workloads[0]
        return speedup_of(first.confirmation or first, self.benchmark.event.baseline_used)


@dataclass(frozen=True)
class _Rule:
    name: str
    code: ReasonCode
    apply: Callable[[PromotionEvidence], RuleResult]


def promote(case: PromotionEvidence, *, earlier_versions: int) -> KernelPromoted | PromotionDenied:
    """Promote the candidate as the family's next version, or say which rule it fails."""
    results: list[GateResult] = []
    for rule in _rules(case):
        found = rule.apply(case)
        results.append(
            GateResult(
                name=rule.name,
                verdict="passed" if isinstance(found, Met) else "failed",
                observed=found.observed,
                threshold=found.threshold,
            )
        )
        if isinstance(found, NotMet):
            message = f"{rule.name}: {found.observed}, expected {found.threshold}"
            return PromotionDenied(
                run_id=case.run_id,
                family=case.task.family,
                task_id=case.task.task_id,
                candidate=case.submitted.candidate,
                reason=Reason(code=rule.code, message=message),
                gates=tuple(results),
                policy_sha256=digest_of(case.policy),
            )
    return _promoted(case, tuple(results), version=earlier_versions + 1)


def _rules(case: PromotionEvidence) -> tuple[_Rule, ...]:
    """Return the rules that apply: two of them ask of what only some tasks or policies have."""
    contenders = (CONTENDERS,) if case.policy.required_contenders else ()
    return (*RULES, *contenders, *((FURTHER_SHAPES,) if case.task.further_shapes else ()))


def _promoted(case: PromotionEvidence, gates: tuple[GateResult, ...], *, version: int) -> KernelPromoted:
    task, verified, benchmark = case.task, case.verified.event, case.benchmark.event
    timing = benchmark.workloads[0]
    return KernelPromoted(
        run_id=case.run_id,
        kernel_id=f"{task.family}_v{version}",
        family=task.family,
        version=version,
        task_id=task.task_id,
        task=task,
        candidate=case.submitted.candidate,
        files=case.submitted.files.files,
        entry_point=case.submitted.files.entry_point,
        artifact_sha256=verified.artifact_sha256,
        author=case.submitted.author,
        skills=case.skills,
        speedup=case.confirmed.interval,
        baseline=benchmark.baseline_used,
        candidate_median_ns=(timing.confirmation or timing).candidate.median_ns,
        baseline_median_ns=case.confirmed.baseline_median_ns,
        policy_sha256=digest_of(case.policy),
        gates=gates,
        verified_seq=case.verified.seq,
        benchmark_seq=case.benchmark.seq,
        env_sha256=benchmark.env_sha256,
        perf_key=case.environment.perf_key,
        abi_key=case.environment.abi_key,
        coverage=Coverage(verified=verified.shapes_verified, measured=_measured_shapes(case)),
        domain=verified.domain,
    )


def _measured_shapes(case: PromotionEvidence) -> tuple[Shape, ...]:
    """Return the shapes that the promotion is for: the task's own, and the further ones that are proven."""
    own = tuple(workload.shape for workload in case.benchmark.event.workloads)
    return own + tuple(
        one.event.shape for one in case.further if against_shape(one.event, case.task, case.policy) is None
    )


def _further(case: PromotionEvidence) -> RuleResult:
    """Check that each further shape of the task has its own evidence, of the same kind as the first shape's."""
    benchmark, wanted = case.benchmark.event, [shape_text(shape) for shape in case.task.further_shapes]
    outcomes = {
        shape_text(one.event.shape): against_shape(one.event, case.task, case.policy) or "proven"
        for one in case.further
    }
    same = all(
        (one.event.candidate, one.event.task_id, one.event.verified_seq, one.event.env_sha256)
        == (benchmark.candidate, benchmark.task_id, benchmark.verified_seq, benchmark.env_sha256)
        and one.event.policy_sha256 == benchmark.policy_sha256
        and at_least(one.event.isolation.level, case.policy.minimum_isolation)
        and one.event.shape in case.verified.event.shapes_verified
        and (one.event.timing is None or one.event.timing.shape == one.event.shape)
        for one in case.further
    )
    named = tuple(one.seq for one in case.further) == benchmark.further_seqs
    observed = "; ".join(f"{shape} {outcome}" for shape, outcome in outcomes.items()) or "none was timed"
    return rule_result(
        observed, f"evidence of its own at {'; '.join(wanted)}", same and named and list(outcomes) == wanted
    )


def _contenders(case: PromotionEvidence) -> RuleResult:
    """Check that each required contender was there at each shape where it applies."""
    required = case.policy.required_contenders
    timed = [case.benchmark.event.contenders, *(one.event.contenders for one in case.further if one.event.timing)]
    absent = sorted({name for standings in timed for name in missing(standings, required)})
    threshold = f"{', '.join(required)}, where they apply"
    return rule_result(f"{', '.join(absent)} not there" if absent else "all there", threshold, not absent)


def _same_bytes(case: PromotionEvidence) -> RuleResult:
    named = {case.submitted.files.sha256, case.submitted.candidate, case.verified.event.candidate}
    named.add(case.benchmark.event.candidate)
    return rule_result(f"{len(named)} candidate digests in the evidence", "one", len(named) == 1)


def _same_task(case: PromotionEvidence) -> RuleResult:
    named = {case.task.task_id, case.verified.event.task_id, case.benchmark.event.task_id}
    chained = case.benchmark.event.verified_seq == case.verified.seq
    observed = f"{len(named)} tasks, benchmark of event {case.benchmark.event.verified_seq}"
    return rule_result(observed, f"one task, benchmark of event {case.verified.seq}", len(named) == 1 and chained)


def _same_policy(case: PromotionEvidence) -> RuleResult:
    wanted = digest_of(case.policy)
    named = {
        case.task.policy_sha256,
        case.verified.event.policy_sha256,
        case.benchmark.event.policy_sha256,
    }
    observed = ", ".join(sorted(digest[:12] for digest in named))
    return rule_result(observed, wanted[:12], named == {wanted})


def _real(case: PromotionEvidence) -> RuleResult:
    simulated = case.verified.event.simulated
    return rule_result("simulated" if simulated else "ran on the target", "ran on the target", not simulated)


def _isolated(case: PromotionEvidence) -> RuleResult:
    levels = (case.verified.event.isolation.level, case.benchmark.event.isolation.level)
    met = all(at_least(level, case.policy.minimum_isolation) for level in levels)
    return rule_result(" and ".join(levels), f"at least {case.policy.minimum_isolation}", met)


def _gates(case: PromotionEvidence) -> RuleResult:
    gates = case.verified.event.gates
    passed, unasked = (sum(gate.verdict == said for gate in gates) for said in ("passed", "not asked"))
    observed = f"{passed} of {len(gates)} gates passed" + (f", {unasked} not asked" if unasked else "")
    return rule_result(
        observed, "all that were asked" if unasked else "all", passed > 0 and passed + unasked == len(gates)
    )


def _held_out(case: PromotionEvidence) -> RuleResult:
    alone, is_drawn = "drawn for this candidate alone", case.verified.event.held_out_seed is not None
    threshold = f"{alone}: its author gets feedback" if case.draws_held_out else "any"
    return rule_result(alone if is_drawn else "those of the task", threshold, is_drawn or not case.draws_held_out)


def _authority(case: PromotionEvidence) -> RuleResult:
    methods = {workload.candidate.method for workload in case.benchmark.event.workloads}
    met = clock_is_accepted(methods, case.task, case.policy)
    return rule_result(", ".join(sorted(methods)), f"{wanted_clock(case.task, case.policy)} or stronger", met)


def _measured(case: PromotionEvidence) -> RuleResult:
    shapes = [workload.shape for workload in case.benchmark.event.workloads]
    return rule_result("; ".join(map(shape_text, shapes)), shape_text(case.task.shape), shapes == [case.task.shape])


def _stands(case: PromotionEvidence) -> RuleResult:
    invalid = case.benchmark_invalidated
    return rule_result("invalidated" if invalid else "stands", "stands", not invalid)


def _newest(case: PromotionEvidence) -> RuleResult:
    met = case.incumbent in (None, case.measured_beside)
    return rule_result(
        f"measured beside {case.measured_beside or 'none'}",
        f"beside {case.incumbent or 'none'}, the incumbent now",
        met,
    )


def _terms(case: PromotionEvidence) -> PromotionTerms:
    benchmark = case.benchmark.event
    return PromotionTerms(case.task, case.policy, benchmark.baseline_used, benchmark.workloads[0].floor_ns)


def _measurement(name: str) -> Callable[[PromotionEvidence], RuleResult]:
    """Return the rule that applies the check of this name to the first measurement."""

    def apply(case: PromotionEvidence) -> RuleResult:
        checks = check_timing(case.benchmark.event.workloads[0], _terms(case))
        check = next(one for one in checks if one.name == name)
        return check.result

    return apply


def _confirmed(case: PromotionEvidence) -> RuleResult:
    terms, first = _terms(case), case.benchmark.event.workloads[0]
    threshold = f"lower end at least {terms.minimum_speedup:.2f}x once more, on fresh data"
    if not case.policy.confirmation:
        return Met("not asked for", threshold)
    if first.confirmation is None:
        return NotMet("none", threshold)
    found = case.confirmed.interval
    met = all(isinstance(check.result, Met) for check in check_confirmation(first, terms))
    return rule_result(f"{found.ratio:.3f}x, {found.low:.3f} to {found.high:.3f}x", threshold, met)


def _resident(case: PromotionEvidence) -> RuleResult:
    timing, terms = case.benchmark.event.workloads[0], _terms(case)
    threshold = f"lower end at least {terms.minimum_speedup:.2f}x with resident operands"
    if "resident" not in case.policy.regimes:
        return Met("not asked for", threshold)
    met = all(isinstance(check.result, Met) for check in check_resident(timing, terms))
    if timing.residency is None or timing.residency.timing is None:
        return rule_result((timing.residency and timing.residency.why_not) or "not measured", threshold, met)
    first = timing.residency.timing
    found = speedup_of(first.confirmation or first, fastest(case.task, first.speedups))
    ends = f"{found.interval.low:.3f} to {found.interval.high:.3f}x"
    return rule_result(f"{found.interval.ratio:.3f}x, {ends} over {found.baseline}", threshold, met)


RULES: tuple[_Rule, ...] = (
    _Rule("same bytes", "TAMPERING", _same_bytes),
    _Rule("same task", "TAMPERING", _same_task),
    _Rule("same policy", "STATIC_POLICY", _same_policy),
    _Rule("not simulated", "INFRASTRUCTURE", _real),
    _Rule("isolation", "INFRASTRUCTURE", _isolated),
    _Rule("gates", "INCORRECT_NUMERICAL", _gates),
    _Rule("held-out shapes", "STATIC_POLICY", _held_out),
    _Rule("timing authority", "CLOCK_DISAGREES", _authority),
    _Rule("measured shape", "STATIC_POLICY", _measured),
    _Rule("benchmark stands", "CLOCK_DISAGREES", _stands),
    _Rule("kernel on offer", "TOO_SLOW", _newest),
    _Rule("process pairs", "NOISE_TOO_HIGH", _measurement("process pairs")),
    _Rule("control", "NOISE_TOO_HIGH", _measurement("control")),
    _Rule("floor", "BELOW_FLOOR", _measurement("floor")),
    _Rule("speedup", "TOO_SLOW", _measurement("speedup")),
    _Rule("confirmation", "TOO_SLOW", _confirmed),
    _Rule("resident", "TOO_SLOW", _resident),
)
CONTENDERS = _Rule("contenders", "INFRASTRUCTURE", _contenders)
"""Rule of a policy that requires contenders."""
FURTHER_SHAPES = _Rule("further shapes", "STATIC_POLICY", _further)
"""Rule of a task with further shapes. It says at which of them the kernel is proven, and demands none of them."""
