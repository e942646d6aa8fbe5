"""The promotion rule for one workload, as docs/measurement.md states it: what was measured against what is asked."""

from forge.domain.evidence import WorkloadTiming
from forge.domain.policy import CONTROL_KIND, BaselineKind, Policy, TimingAuthority
from forge.domain.task import Task
from forge.domain.verdict import Reason
from forge.lab.statistics import within_band


def decide(task: Task, policy: Policy, timing: WorkloadTiming, used: BaselineKind) -> Reason | None:
    """The promotion rule for one workload; None if it is met, else the first reason against it."""
    band = control_band(policy, timing.candidate.method)
    if not within_band(timing.control, band):
        return Reason(
            code="NOISE_TOO_HIGH",
            message=f"{CONTROL_KIND} against itself reads {timing.control.low:.3f} to {timing.control.high:.3f}x, "
            f"allowed {1 - band:.2f} to {1 + band:.2f}x: no verdict on this machine now",
        )
    if not timing.candidate.p90_ns >= policy.floor_slack * timing.floor_ns:
        return Reason(
            code="BELOW_FLOOR",
            message=f"{timing.candidate.p90_ns:.0f} ns is less than moving the bytes takes "
            f"({timing.floor_ns:.0f} ns): the evaluator or the candidate is lying",
        )
    speedup = next(one for one in timing.speedups if one.baseline == used)
    if not (speedup.interval.low >= task.minimum_speedup and speedup.pairs_lost == 0):
        return Reason(
            code="TOO_SLOW",
            message=f"{speedup.interval.ratio:.2f}x over {used}, 95 % interval {speedup.interval.low:.2f} to "
            f"{speedup.interval.high:.2f}x: the lower end must reach {task.minimum_speedup:.2f}x "
            "in every process pair",
        )
    return _unconfirmed(task, policy, timing, used)


def control_band(policy: Policy, method: TimingAuthority) -> float:
    """How far the control may be from 1."""
    return policy.control_half_width if method == "host_slope" else policy.replay_control_half_width


def _unconfirmed(task: Task, policy: Policy, timing: WorkloadTiming, used: BaselineKind) -> Reason | None:
    """What a confirmation says against a candidate that met the rule."""
    again = timing.confirmation
    if again is None:
        return None
    band = control_band(policy, again.candidate.method)
    if not within_band(again.control, band):
        return Reason(
            code="NOISE_TOO_HIGH",
            message=f"in the confirmation {CONTROL_KIND} against itself reads {again.control.low:.3f} to "
            f"{again.control.high:.3f}x, allowed {1 - band:.2f} to {1 + band:.2f}x",
        )
    speedup = next(one for one in again.speedups if one.baseline == used)
    if not (speedup.interval.low >= task.minimum_speedup and speedup.pairs_lost == 0):
        return Reason(
            code="TOO_SLOW",
            message=f"not confirmed on fresh data: {speedup.interval.ratio:.2f}x over {used}, 95 % interval "
            f"{speedup.interval.low:.2f} to {speedup.interval.high:.2f}x, the lower end must reach "
            f"{task.minimum_speedup:.2f}x",
        )
    return None


def baseline_used(task: Task, timing: WorkloadTiming) -> BaselineKind:
    """The one that has to be beaten: the task's choice, else the fastest."""
    if task.baseline != "best":
        return task.baseline
    return min(timing.speedups, key=lambda one: (one.baseline_median_ns, one.baseline)).baseline
