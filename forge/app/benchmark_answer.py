"""Says what a benchmark means as an answer: what was measured, how, and what that says of the baselines."""

from typing import assert_never

from forge.authors.analyst import AT_FLOOR
from forge.domain.contender import (
    ContenderAbsent,
    ContenderFailed,
    ContenderStanding,
    MeasuredInFull,
    ScreenedOut,
    is_contender,
)
from forge.domain.evidence import Confirmation, Replay, Residency, Speedup, WorkloadTiming
from forge.domain.verdict import UNDECIDED, Reason
from forge.events import BenchmarkFailed, BenchmarkRecorded, ShapeTimed

Data = dict[str, object]

FAR_FROM_THE_FLOOR = 0.10
"""Share of its floor below which a baseline is bad. Chosen; such a baseline takes ten times the floor, so a kernel
may be several times faster and still slow."""


def timed(event: BenchmarkRecorded | BenchmarkFailed) -> Data:
    """Return verdict, reason, every workload with its baselines, and the figures of an early stop."""
    reason = event.reason if isinstance(event, BenchmarkFailed) else None
    stopped = event.stopped if isinstance(event, BenchmarkFailed) else None
    verdict = "accepted" if reason is None else "inconclusive" if reason.code in UNDECIDED else "rejected"
    return {
        "verdict": verdict,
        "candidate": event.candidate,
        "reason": reason.model_dump(mode="json") if reason else None,
        "baseline_used": event.baseline_used,
        "workloads": [_workload(timing) | {"notes": _notes(timing, reason)} for timing in event.workloads],
        "contenders": [_contender(one) for one in event.contenders],
        "stopped": stopped.model_dump(mode="json") if stopped else None,
    }


def further_shape(event: ShapeTimed) -> Data:
    """Return the verdict at a further shape, its reason, and the times if there are any."""
    reason = event.reason
    told: Data = {
        "shape": event.shape,
        "verdict": "accepted" if reason is None else "inconclusive" if reason.code in UNDECIDED else "rejected",
        "reason": reason.model_dump(mode="json") if reason else None,
        "baseline_used": event.baseline_used,
    }
    return told | {"timing": _workload(event.timing) | {"notes": []} if event.timing else None}


def _contender(one: ContenderStanding) -> Data:
    """Return what became of one contender, with its reason in words if it was not measured in full."""
    standing = one.standing
    match standing:
        case MeasuredInFull():
            said = "measured beside the candidate"
        case ScreenedOut(least_ns=least_ns):
            said = f"right, and slower than others: about {least_ns / 1000:.2f} us"
        case ContenderFailed(reason=reason):
            said = f"{reason.code}: {reason.message}"
        case ContenderAbsent(cause=cause, detail=detail):
            said = f"{cause}: {detail}"
        case _:
            assert_never(standing)
    return {
        "contender": one.contender,
        "package": one.package,
        "version": one.version,
        "licence": one.licence,
        "outcome": standing.outcome,
        "said": said,
    }


def _workload(timing: WorkloadTiming) -> Data:
    return {
        "shape": timing.shape,
        "method": timing.candidate.method,
        "candidate_ns": timing.candidate.median_ns,
        "floor_ns": timing.floor_ns,
        "floor_fraction": timing.floor_fraction,
        "harness_ns": timing.harness_ns,
        "control": [timing.control.low, timing.control.high],
        "process_pairs": timing.process_pairs,
        "rounds": timing.rounds,
        "baselines": _baselines(timing.speedups, timing.floor_ns),
        "confirmation": _confirmation(timing.confirmation, timing.floor_ns) if timing.confirmation else None,
        "replay": _replay(timing.replay) if timing.replay else None,
        "residency": _residency(timing.residency) if timing.residency else None,
    }


def _residency(found: Residency) -> Data:
    """Return the resident regime's figures, or why it wasn't measured."""
    timing = found.timing
    told: Data = {"cache_bytes": found.cache_bytes, "operand_bytes": found.operand_bytes, "why_not": found.why_not}
    if timing is None:
        return told | {"timing": None}
    return told | {
        "timing": {
            "candidate_ns": timing.candidate.median_ns,
            "floor_fraction": timing.floor_ns / timing.candidate.median_ns,
            "control": [timing.control.low, timing.control.high],
            "baselines": _baselines(timing.speedups, timing.floor_ns),
            "confirmation": _confirmation(timing.confirmation, timing.floor_ns) if timing.confirmation else None,
        }
    }


def _baselines(speedups: tuple[Speedup, ...], floor_ns: float) -> Data:
    return {
        one.baseline: {
            "median_ns": one.baseline_median_ns,
            "speedup": one.interval.ratio,
            "ci95": [one.interval.low, one.interval.high],
            "pairs_lost": one.pairs_lost,
            "floor_fraction": floor_ns / one.baseline_median_ns,
        }
        for one in speedups
    }


def _confirmation(again: Confirmation, floor_ns: float) -> Data:
    return {
        "candidate_ns": again.candidate.median_ns,
        "control": [again.control.low, again.control.high],
        "process_pairs": again.process_pairs,
        "baselines": _baselines(again.speedups, floor_ns),
    }


def _replay(replay: Replay) -> Data:
    return {
        "plan_sha256": replay.plan_sha256,
        "sets": replay.sets,
        "set_bytes": replay.set_bytes,
        "host_ratio": list(replay.host_ratio),
        "blocks": replay.blocks,
        "dropped": replay.dropped,
        "gpu_s": replay.gpu_s,
        "states": [state.model_dump(mode="json") for state in replay.states],
    }


def _notes(timing: WorkloadTiming, reason: Reason | None) -> list[Data]:
    """Return what is to be said of the fastest baseline: whether it is a contender that stands, and near its floor.

    A CPU's floor is only a coarse alarm, and says nothing of a baseline.
    """
    best = min(timing.speedups, key=lambda one: one.baseline_median_ns)
    if reason is not None and reason.code == "TOO_SLOW" and is_contender(best.baseline):
        said = f"{best.baseline} is what a user would pick instead, and the kernel isn't enough faster than it"
        return [{"code": "contender_stands", "message": said}]
    if timing.candidate.method != "launch_plan":
        return []
    reached = timing.floor_ns / best.baseline_median_ns
    if reached < FAR_FROM_THE_FLOOR:
        said = (
            f"the best baseline, {best.baseline}, reaches {reached:.0%} of its floor: a speedup over it says little"
        )
        return [{"code": "bad_baseline", "message": said}]
    if reason is not None and reason.code == "TOO_SLOW" and reached >= AT_FLOOR:
        said = (
            f"{best.baseline} already reaches {reached:.0%} of its floor: no kernel could be more than "
            f"{1 / reached:.2f}x as fast. This is a result about the baseline, not a fault of the kernel"
        )
        return [{"code": "baseline_stands", "message": said}]
    return []
