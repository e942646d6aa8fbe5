"""Applies the promotion rule again, independent of the pipeline, to figures that were compared with their samples."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.samples import Document

_LEVELS = ("none", "bubblewrap", "namespaces")
"""Levels of isolation, weakest first."""
_FIELD_DEFAULTS = {"confirmation": False, "gpu_timing_authority": "host_slope", "replay_control_half_width": 0.02}
"""Value of each policy field for policies that are older than the field."""
_UNDERSTATED_SHARE = 0.5
"""Share of a measured interval's lower end below which a claim counts as understated."""
_OLD_REGIMES = ["cold"]
"""Regimes of a policy that is older than the resident one."""


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


@dataclass(frozen=True)
class Unmet:
    """The first part of the rule that a measurement doesn't meet."""

    code: str
    is_undecided_speedup: bool = False
    """Whether the speedup's interval holds the threshold and is wider than the control's band: it decides nothing."""


def first_unmet(task: Document, policy: Document, workload: Document, used: str) -> Unmet | None:
    """Return the first part of the rule that a workload doesn't meet; None if it meets all."""
    found = _unmet(task, policy, workload, workload["floor_ns"], used)
    again = workload.get("confirmation")
    if found is None and again is not None:
        found = _unmet_by_confirmation(task, policy, workload, again, used)
    return found or _unmet_by_resident(task, policy, workload)


def _unmet(task: Document, policy: Document, measured: Document, floor_ns: float, used: str) -> Unmet | None:
    """Return the first part that one measurement doesn't meet: pairs, control, floor or speedup."""
    if measured["process_pairs"] < policy["process_pairs"] or not _control_within_band(policy, measured):
        return Unmet("NOISE_TOO_HIGH")
    if measured["candidate"]["p90_ns"] < policy["floor_slack"] * floor_ns:
        return Unmet("BELOW_FLOOR")
    least = _least_speedup(task, policy)
    if _fast_enough(measured, used, least):
        return None
    found = speedup_over(measured, used)["interval"]
    is_wide = math.log(found["high"] / found["low"]) / 2 > control_band(policy, measured)
    if is_wide and found["low"] < least <= found["high"]:
        return Unmet("NOISE_TOO_HIGH", is_undecided_speedup=True)
    return Unmet("TOO_SLOW")


def _unmet_by_confirmation(
    task: Document, policy: Document, workload: Document, again: Document, used: str
) -> Unmet | None:
    if again["candidate"]["method"] != workload["candidate"]["method"]:
        return Unmet("CLOCK_DISAGREES")
    return _unmet(task, policy, again, workload["floor_ns"], used)


def _unmet_by_resident(task: Document, policy: Document, workload: Document) -> Unmet | None:
    """Return the first part that the resident regime doesn't meet, if the policy asks for it and it applies."""
    if "resident" not in policy.get("regimes", _OLD_REGIMES):
        return None
    residency = workload.get("residency")
    if residency is None or (residency["timing"] is None and residency["why_not"] is None):
        return Unmet("INFRASTRUCTURE")
    resident = residency["timing"]
    if resident is None:
        return None
    used = baseline_used(task, resident)
    found = _unmet(task, policy, resident, resident["floor_ns"], used)
    if found is not None or workload.get("confirmation") is None:
        return found
    if resident["confirmation"] is None:
        return Unmet("INFRASTRUCTURE")
    return _unmet(task, policy, resident["confirmation"], resident["floor_ns"], used)


def reason_differences(
    task: Document, policy: Document, workload: Document, used: str, stated: str | None
) -> Iterator[Difference]:
    """Compare a recorded reason with the one that the rule gives.

    An interval that can't tell reads NOISE_TOO_HIGH, and TOO_SLOW in events older than that distinction.
    """
    found = first_unmet(task, policy, workload, used)
    if found is None or not found.is_undecided_speedup or stated != "TOO_SLOW":
        yield from differences(found and found.code, stated, "reason.code")


def unmet_rules(task: Document, policy: Document, benchmark: Document, verified: Document) -> Iterator[Difference]:
    """Yield each promotion rule that the evidence named by a promotion doesn't meet."""
    (workload,) = benchmark["workloads"]
    of_evidence = (
        ("measured shape", repr(task["shape"]), workload["shape"] == task["shape"]),
        ("gates", "every gate passed", _all_gates_passed(verified)),
        ("not simulated", "a verification on the target", verified["simulated"] is False),
        ("same policy", "the task's in all evidence", _same_policy(task, benchmark, verified)),
    )
    unmet = [(name, wanted) for name, wanted, met in of_evidence if not met]
    for name, wanted in (*unmet, *unmet_by_measurement(task, policy, benchmark, verified)):
        yield f"promotion rule {name!r}", wanted, "not met by the evidence named"


def unmet_by_measurement(
    task: Document, policy: Document, measured: Document, verified: Document
) -> Iterator[tuple[str, str]]:
    """Yield name and threshold of each rule that the measurement at one shape doesn't meet."""
    (workload,) = measured["workloads"]
    used, least = measured["baseline_used"], _least_speedup(task, policy)
    clock = f"{_required_clock(task, policy)} or launch_plan"
    pairs = policy["process_pairs"]
    for name, wanted, met in (
        ("isolation", f"at least {policy['minimum_isolation']}", isolated_enough(policy, measured, verified)),
        ("timing authority", clock, _clock_accepted(task, policy, workload)),
        ("process pairs", f"at least {pairs}", workload["process_pairs"] >= pairs),
        ("control", "within the policy's band", _control_within_band(policy, workload)),
        ("floor", "not below the floor", _above_floor(policy, workload)),
        ("speedup", f"lower end at least {least}, no pair lost", _fast_enough(workload, used, least)),
        ("confirmation", f"lower end at least {least} once more", _confirmed(task, policy, workload, used)),
        ("resident", "the same where it applies", _unmet_by_resident(task, policy, workload) is None),
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


def claim_verdicts(claimed: float, interval: Document) -> tuple[str, ...]:
    """Return what may be said of a claimed speedup; the first events know no understated one."""
    if interval["high"] < 1:
        return ("refuted",)
    if claimed > interval["high"]:
        return ("overstated",)
    return ("understated", "confirmed") if claimed < _UNDERSTATED_SHARE * interval["low"] else ("confirmed",)


def control_band(policy: Document, measured: Document) -> float:
    """Return the largest distance of the control from 1, by the clock of a measurement."""
    name = "control_half_width" if measured["candidate"]["method"] == "host_slope" else "replay_control_half_width"
    return float(policy.get(name, _FIELD_DEFAULTS.get(name)))


def _control_within_band(policy: Document, measured: Document) -> bool:
    return within_band(measured["control"], control_band(policy, measured))


def within_band(control: Document, band: float) -> bool:
    """Return whether the whole interval of a control lies within 1 +- `band`."""
    return bool(1 - band <= control["low"] and control["high"] <= 1 + band)


def _above_floor(policy: Document, workload: Document) -> bool:
    return bool(workload["candidate"]["p90_ns"] >= policy["floor_slack"] * workload["floor_ns"])


def _least_speedup(task: Document, policy: Document) -> float:
    return float(max(task["minimum_speedup"], policy["minimum_speedup"]))


def _fast_enough(measured: Document, used: object, least: float) -> bool:
    found = speedup_over(measured, used)
    return bool(found["interval"]["low"] >= least and found["pairs_lost"] == 0)


def _confirmed(task: Document, policy: Document, workload: Document, used: str) -> bool:
    if not policy.get("confirmation", _FIELD_DEFAULTS["confirmation"]):
        return True
    again = workload.get("confirmation")
    return again is not None and _unmet_by_confirmation(task, policy, workload, again, used) is None


def _same_policy(task: Document, *evidence: Document) -> bool:
    return all(one["policy_sha256"] == task["policy_sha256"] for one in evidence)


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
