"""Applies the promotion rule again, independent of the pipeline, to figures that were compared with their samples."""

import math
from collections.abc import Iterator

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.samples import Document

_LEVELS = ("none", "bubblewrap", "namespaces")
"""Levels of isolation, weakest first."""
_FIELD_DEFAULTS = {"confirmation": False, "gpu_timing_authority": "host_slope", "replay_control_half_width": 0.02}
"""Value of each policy field for policies that are older than the field."""
_OLD_REGIMES = ["cold"]
"""Regimes of a policy that is older than the resident one."""
UNDECIDED_SPEEDUP = "an interval that is too wide to tell"
"""Answer of `reason_against` for an interval that holds the threshold and is wider than the control's band."""


def counted_measurement(workload: Document) -> Document:
    """Return the measurement whose figures count: the confirmation if there is one."""
    again = workload.get("confirmation")
    return again if isinstance(again, dict) else workload


def speedup_over(measured: Document, baseline: object) -> Document:
    """Return the speedup over one baseline; raise KeyError without it."""
    for one in measured["speedups"]:
        if one["baseline"] == baseline:
            return dict(one)
    raise KeyError(f"no speedup over {baseline!r}")


def baseline_used(task: Document, workload: Document) -> str:
    """Return the baseline that has to be beaten: the task's own, otherwise the one with the lowest median."""
    if task["baseline"] != "best":
        return str(task["baseline"])
    return str(min((one["baseline_median_ns"], one["baseline"]) for one in workload["speedups"])[1])


def reason_against(task: Document, policy: Document, workload: Document, used: str) -> str | None:
    """Return the code of the first reason against a workload, or `UNDECIDED_SPEEDUP`; None if it meets the rule."""
    least = max(task["minimum_speedup"], policy["minimum_speedup"])
    if not _control_within_band(policy, workload):
        return "NOISE_TOO_HIGH"
    if not _above_floor(policy, workload, workload):
        return "BELOW_FLOOR"
    if not _fast_enough(workload, used, least):
        return _too_slow(policy, workload, used, least)
    again = workload.get("confirmation")
    if again is not None and not _control_within_band(policy, again):
        return "NOISE_TOO_HIGH"
    if again is not None and not _fast_enough(again, used, least):
        return _too_slow(policy, again, used, least)
    return _reason_against_resident(task, policy, workload)


def _reason_against_resident(task: Document, policy: Document, workload: Document) -> str | None:
    """Return the code of the first reason against the resident regime, if the policy asks for it and it applies."""
    residency = workload.get("residency")
    if "resident" not in policy.get("regimes", _OLD_REGIMES):
        return None
    if residency is None or (residency["timing"] is None and residency["why_not"] is None):
        return "INFRASTRUCTURE"
    resident = residency["timing"]
    if resident is None:
        return None
    used, least = baseline_used(task, resident), max(task["minimum_speedup"], policy["minimum_speedup"])
    for measured in (resident, resident["confirmation"]):
        if measured is None:
            return None if workload.get("confirmation") is None else "INFRASTRUCTURE"
        if not _control_within_band(policy, measured):
            return "NOISE_TOO_HIGH"
        if not _above_floor(policy, measured, resident):
            return "BELOW_FLOOR"
        if not _fast_enough(measured, used, least):
            return _too_slow(policy, measured, used, least)
    return None


def reason_differences(
    task: Document, policy: Document, workload: Document, used: str, stated: str | None
) -> Iterator[Difference]:
    """Compare a recorded reason with the one that the rule gives.

    An interval that is too wide to tell reads NOISE_TOO_HIGH, and TOO_SLOW in events older than that distinction.
    """
    against = reason_against(task, policy, workload, used)
    if against != UNDECIDED_SPEEDUP:
        yield from differences(against, stated, "reason.code")
    elif stated != "TOO_SLOW":
        yield from differences("NOISE_TOO_HIGH", stated, "reason.code")


def unmet_rules(task: Document, policy: Document, benchmark: Document, verified: Document) -> Iterator[Difference]:
    """Yield each promotion rule that the evidence named by a promotion doesn't meet."""
    (workload,) = benchmark["workloads"]
    of_evidence = (
        ("measured shape", repr(task["shape"]), workload["shape"] == task["shape"]),
        ("gates", "every gate passed", _all_gates_passed(verified)),
        ("not simulated", "a verification on the target", verified["simulated"] is False),
    )
    unmet = [(name, wanted) for name, wanted, met in of_evidence if not met]
    for name, wanted in (*unmet, *unmet_by_measurement(task, policy, benchmark, verified)):
        yield f"promotion rule {name!r}", wanted, "not met by the evidence named"


def unmet_by_measurement(
    task: Document, policy: Document, measured: Document, verified: Document
) -> Iterator[tuple[str, str]]:
    """Yield name and threshold of each rule that the measurement at one shape doesn't meet."""
    (workload,) = measured["workloads"]
    used, least = measured["baseline_used"], max(task["minimum_speedup"], policy["minimum_speedup"])
    clock = f"{_required_clock(task, policy)} or launch_plan"
    pairs = policy["process_pairs"]
    for name, wanted, met in (
        ("isolation", f"at least {policy['minimum_isolation']}", isolated_enough(policy, measured, verified)),
        ("timing authority", clock, _clock_accepted(task, policy, workload)),
        ("process pairs", f"at least {pairs}", workload["process_pairs"] >= pairs),
        ("control", "within the policy's band", _control_within_band(policy, workload)),
        ("floor", "not below the floor", _above_floor(policy, workload, workload)),
        ("speedup", f"lower end at least {least}, no pair lost", _fast_enough(workload, used, least)),
        ("confirmation", f"lower end at least {least} once more", _confirmed(policy, workload, used, least)),
        ("resident", "the same where it applies", _reason_against_resident(task, policy, workload) is None),
    ):
        if not met:
            yield name, wanted


def gate_differences(event: Document, verified: Document) -> Iterator[Difference]:
    """Yield what a promotion's gates contradict: each passed, and an author with feedback had shapes of its own.

    Promotions from before that rule don't have its gate.
    """
    for gate in event["gates"]:
        if gate["verdict"] != "passed":
            yield f"gates: {gate['name']}", "passed", str(gate["verdict"])
        if gate["name"] == "held-out shapes":
            drawn = verified.get("held_out_seed") is not None
            if drawn != (gate["observed"] == "drawn for this candidate alone"):
                yield "gates: held-out shapes", f"seed {verified.get('held_out_seed')}", str(gate["observed"])
            if event["author"].startswith("agent:") and not drawn:
                yield "gates: held-out shapes", f"a seed, for author {event['author']}", "None"


def gate_texts(policy: Document, benchmark: Document) -> dict[str, str]:
    """Return what each gate of a promotion that quotes figures must say it observed."""
    (workload,) = benchmark["workloads"]
    control, used = workload["control"], benchmark["baseline_used"]
    first, again = speedup_over(workload, used)["interval"], workload.get("confirmation")
    texts = {
        "process pairs": f"{workload['process_pairs']} process pairs",
        "control": f"{control['low']:.3f} to {control['high']:.3f}x",
        "floor": f"{workload['candidate']['p90_ns']:.0f} ns",
        "speedup": f"{first['ratio']:.3f}x, 95 % interval {first['low']:.3f} to {first['high']:.3f}x over {used}",
    }
    if again is not None and policy.get("confirmation", _FIELD_DEFAULTS["confirmation"]):
        found = speedup_over(again, used)["interval"]
        texts["confirmation"] = f"{found['ratio']:.3f}x, {found['low']:.3f} to {found['high']:.3f}x"
    return texts


def control_band(policy: Document, measured: Document) -> float:
    """Return the largest distance of the control from 1, by the clock of a measurement."""
    name = "control_half_width" if measured["candidate"]["method"] == "host_slope" else "replay_control_half_width"
    return float(policy.get(name, _FIELD_DEFAULTS.get(name)))


def _control_within_band(policy: Document, measured: Document) -> bool:
    band, control = control_band(policy, measured), measured["control"]
    return bool(1 - band <= control["low"] and control["high"] <= 1 + band)


def _above_floor(policy: Document, measured: Document, workload: Document) -> bool:
    return bool(measured["candidate"]["p90_ns"] >= policy["floor_slack"] * workload["floor_ns"])


def _fast_enough(measured: Document, used: object, least: float) -> bool:
    found = speedup_over(measured, used)
    return bool(found["interval"]["low"] >= least and found["pairs_lost"] == 0)


def _too_slow(policy: Document, measured: Document, used: object, least: float) -> str:
    """Return the reason against a speedup that isn't enough: too slow, or an interval that is too wide to tell."""
    found = speedup_over(measured, used)["interval"]
    is_wide = math.log(found["high"] / found["low"]) / 2 > control_band(policy, measured)
    return UNDECIDED_SPEEDUP if is_wide and found["low"] < least <= found["high"] else "TOO_SLOW"


def _confirmed(policy: Document, workload: Document, used: object, least: float) -> bool:
    if not policy.get("confirmation", _FIELD_DEFAULTS["confirmation"]):
        return True
    again = workload.get("confirmation")
    return (
        again is not None
        and again["candidate"]["method"] == workload["candidate"]["method"]
        and again["process_pairs"] >= policy["process_pairs"]
        and _control_within_band(policy, again)
        and _above_floor(policy, again, workload)
        and _fast_enough(again, used, least)
    )


def _all_gates_passed(verified: Document) -> bool:
    gates = verified["gates"]
    found = {gate["verdict"] for gate in gates}
    return "passed" in found and found <= {"passed", "not asked"}


def isolated_enough(policy: Document, *evidence: Document) -> bool:
    """Return whether every event was recorded behind at least the policy's wall."""
    least = _LEVELS.index(policy["minimum_isolation"])
    return all(_LEVELS.index(one["isolation"]["level"]) >= least for one in evidence)


def _required_clock(task: Document, policy: Document) -> object:
    asked = policy.get("gpu_timing_authority", _FIELD_DEFAULTS["gpu_timing_authority"])
    return asked if task["target"]["platform"] == "cuda" else "host_slope"


def _clock_accepted(task: Document, policy: Document, workload: Document) -> bool:
    return workload["candidate"]["method"] in (_required_clock(task, policy), "launch_plan")
