"""The promotion rule, as docs/measurement.md states it: the only module that compares a measurement with a policy.

A benchmark takes the first check that failed as its reason; a promotion records all of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forge.domain.another_run import IN_ANOTHER_RUN
from forge.domain.evidence import Confirmation, Interval, ResidentTiming, Speedup, WorkloadTiming
from forge.domain.policy import CONTROL_KIND, BaselineKind, Policy, TimingAuthority
from forge.domain.task import Task
from forge.domain.verdict import Reason, ReasonCode
from forge.events import ShapeTimed
from forge.lab.timing.paired_interval import within_band
from forge.projections.kernel import speedup_of

AnyTiming = WorkloadTiming | Confirmation | ResidentTiming


@dataclass(frozen=True)
class Met:
    """The evidence meets a requirement."""

    observed: str
    threshold: str


@dataclass(frozen=True)
class NotMet:
    """The evidence doesn't meet a requirement."""

    observed: str
    threshold: str


RuleResult = Met | NotMet


def rule_result(observed: str, threshold: str, met: bool) -> RuleResult:
    """Return a rule as met or not met, with what was observed and what it demands."""
    return Met(observed, threshold) if met else NotMet(observed, threshold)


@dataclass(frozen=True)
class RequirementCheck:
    """One comparison of a measurement with its requirement."""

    name: str
    code: ReasonCode
    result: RuleResult
    against: str
    """Reason text if the measurement doesn't meet the requirement."""

    @property
    def is_undecided_speedup(self) -> bool:
        """Return whether the speedup's interval is too wide to tell."""
        return self.name == "speedup" and self.code == "NOISE_TOO_HIGH"


@dataclass(frozen=True)
class PromotionTerms:
    """The requirements of a task and its policy for every measurement of one workload."""

    task: Task
    policy: Policy
    baseline: BaselineKind
    """Baseline that must be beaten."""
    floor_ns: float

    @property
    def minimum_speedup(self) -> float:
        """Smallest ratio for the interval's lower end: the larger of the task's and the policy's minimum."""
        return max(self.task.minimum_speedup, self.policy.minimum_speedup)


def decide(task: Task, policy: Policy, timing: WorkloadTiming, used: BaselineKind) -> Reason | None:
    """Apply the promotion rule to one workload; return None if it is met, else the first reason against it.

    A run whose speedup can't be told is over: a second look at joined samples would give chance a second try.
    """
    check = first_unmet(task, policy, timing, used)
    if check is None:
        return None
    message = f"{check.against}; {IN_ANOTHER_RUN}" if check.is_undecided_speedup else check.against
    return Reason(code=check.code, message=message)


def first_unmet(task: Task, policy: Policy, timing: WorkloadTiming, used: BaselineKind) -> RequirementCheck | None:
    """Return the first requirement that one workload doesn't meet; None if it meets all."""
    terms = PromotionTerms(task, policy, used, timing.floor_ns)
    for prefix, checks in (
        ("", check_timing(timing, terms)),
        ("not confirmed on fresh data: ", check_confirmation(timing, terms)),
        ("with resident operands: ", check_resident(timing, terms)),
    ):
        for check in checks:
            if isinstance(check.result, NotMet):
                return replace(check, against=f"{prefix}{check.against}")
    return None


def against_shape(found: ShapeTimed, task: Task, policy: Policy) -> ReasonCode | None:
    """Apply the rule again to what was recorded at a further shape; return the code of the reason against it."""
    if found.reason is not None:
        return found.reason.code
    if found.timing is None or found.baseline_used != baseline_used(task, found.timing):
        return "INFRASTRUCTURE"
    if policy.confirmation and found.timing.confirmation is None:
        return "TOO_SLOW"
    if not clock_is_accepted({found.timing.candidate.method}, task, policy):
        return "CLOCK_DISAGREES"
    against = decide(task, policy, found.timing, found.baseline_used)
    return None if against is None else against.code


def wanted_clock(task: Task, policy: Policy) -> TimingAuthority:
    """Return the weakest clock that counts for a task."""
    return policy.gpu_timing_authority if task.target.platform == "cuda" else "host_slope"


def clock_is_accepted(methods: set[TimingAuthority], task: Task, policy: Policy) -> bool:
    """Return whether times by these clocks count: all by the wanted one, or all by launch plans."""
    return methods in ({wanted_clock(task, policy)}, {"launch_plan"})


def check_timing(measured: AnyTiming, terms: PromotionTerms) -> tuple[RequirementCheck, ...]:
    """Check pairs, control, floor and speedup, in this order, for a first measurement or for its confirmation."""
    return (
        _pairs(measured, terms),
        _control(measured, terms),
        _floor(measured, terms),
        _speedup(measured, terms),
    )


def check_confirmation(timing: WorkloadTiming, terms: PromotionTerms) -> Iterator[RequirementCheck]:
    """Check that the confirmation used the same clock, then check its timing; no checks if there is none."""
    again = timing.confirmation
    if again is None:
        return
    first, second = timing.candidate.method, again.candidate.method
    against = f"timed by {second}, and by {first} before"
    yield RequirementCheck(
        "timing authority", "CLOCK_DISAGREES", rule_result(second, first, first == second), against
    )
    yield from check_timing(again, terms)


def check_resident(timing: WorkloadTiming, terms: PromotionTerms) -> Iterator[RequirementCheck]:
    """Check the resident regime like the cold one, over its own fastest baseline and floor.

    No checks if the policy doesn't ask for it, or if it doesn't apply.
    """
    if "resident" not in terms.policy.regimes:
        return
    residency = timing.residency
    if residency is None or (residency.timing is None and residency.why_not is None):
        against = "this regime wasn't measured, and nothing says why"
        unmeasured = NotMet("not measured", "measured if it applies")
        yield RequirementCheck("resident", "INFRASTRUCTURE", unmeasured, against)
        return
    resident = residency.timing
    if resident is None:
        return
    own = PromotionTerms(terms.task, terms.policy, fastest(terms.task, resident.speedups), resident.floor_ns)
    yield from check_timing(resident, own)
    if timing.confirmation is None:
        return
    if resident.confirmation is None:
        against = "the confirmation didn't measure this regime"
        unconfirmed = NotMet("none", "confirmed as the cold one")
        yield RequirementCheck("confirmation", "INFRASTRUCTURE", unconfirmed, against)
        return
    yield from check_timing(resident.confirmation, own)


def control_band(policy: Policy, method: TimingAuthority) -> float:
    """Return the largest distance of the control from 1."""
    return policy.control_half_width if method == "host_slope" else policy.replay_control_half_width


def baseline_used(task: Task, timing: WorkloadTiming) -> BaselineKind:
    """Return the baseline that must be beaten: the task's choice, else the fastest."""
    return fastest(task, timing.speedups)


def fastest(task: Task, speedups: tuple[Speedup, ...]) -> BaselineKind:
    """Return the baseline to beat among those measured: the task's choice, else the fastest."""
    if task.baseline != "best":
        return task.baseline
    return min(speedups, key=lambda one: (one.baseline_median_ns, one.baseline)).baseline


def _pairs(measured: AnyTiming, terms: PromotionTerms) -> RequirementCheck:
    pairs, least = measured.process_pairs, terms.policy.process_pairs
    observed, threshold = f"{pairs} process pairs", f"at least {least}"
    against = f"{observed}, expected {threshold}: no verdict on so few"
    return RequirementCheck(
        "process pairs", "NOISE_TOO_HIGH", rule_result(observed, threshold, pairs >= least), against
    )


def _control(measured: AnyTiming, terms: PromotionTerms) -> RequirementCheck:
    control, band = measured.control, control_band(terms.policy, measured.candidate.method)
    observed, threshold = f"{control.low:.3f} to {control.high:.3f}x", f"{1 - band:.2f} to {1 + band:.2f}x"
    against = f"{CONTROL_KIND} against itself reads {observed}, allowed {threshold}: no verdict on this machine now"
    result = rule_result(observed, threshold, within_band(control, band))
    return RequirementCheck("control", "NOISE_TOO_HIGH", result, against)


def _floor(measured: AnyTiming, terms: PromotionTerms) -> RequirementCheck:
    p90_ns, least_ns = measured.candidate.p90_ns, terms.policy.floor_slack * terms.floor_ns
    observed, threshold = f"{p90_ns:.0f} ns", f"at least {least_ns:.0f} ns"
    against = (
        f"{observed} is less than moving the bytes takes ({terms.floor_ns:.0f} ns): "
        "the evaluator or the candidate is lying"
    )
    return RequirementCheck("floor", "BELOW_FLOOR", rule_result(observed, threshold, p90_ns >= least_ns), against)


def _speedup(measured: AnyTiming, terms: PromotionTerms) -> RequirementCheck:
    speedup = speedup_of(measured, terms.baseline)
    found, least = speedup.interval, terms.minimum_speedup
    observed = f"{found.ratio:.3f}x, 95 % interval {found.low:.3f} to {found.high:.3f}x over {speedup.baseline}"
    band = control_band(terms.policy, measured.candidate.method)
    against = (
        f"{found.ratio:.2f}x over {speedup.baseline}, 95 % interval {found.low:.2f} to {found.high:.2f}x: "
        f"the lower end must reach {least:.2f}x in every process pair"
    )
    threshold = f"lower end at least {least:.2f}x, no process pair lost"
    result = rule_result(observed, threshold, found.low >= least and speedup.pairs_lost == 0)
    if not _is_undecided(found, least, band):
        return RequirementCheck("speedup", "TOO_SLOW", result, against)
    against += f", and an interval wider than the control's band of {band:.0%} can't tell"
    return RequirementCheck("speedup", "NOISE_TOO_HIGH", result, against)


def _is_undecided(found: Interval, least: float, band: float) -> bool:
    """Return whether an interval holds the threshold and is wider than the control's band, as on a busy machine."""
    return found.low < least <= found.high and math.log(found.high / found.low) / 2 > band
