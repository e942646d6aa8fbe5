"""The audit's own reading of the promotion rule, on recorded figures that were held against their samples."""

from collections.abc import Iterator

from forge.ledger.audit.differences import Difference
from forge.ledger.audit.samples import Document

_LEVELS = ("none", "bubblewrap", "namespaces")
_SINCE = {"confirmation": False, "gpu_timing_authority": "host_slope", "replay_control_half_width": 0.02}
"""What a policy meant that was written before it had the field."""


def shown(workload: Document) -> Document:
    """The measurement whose figures count: the confirmation, where there is one."""
    again = workload.get("confirmation")
    return again if isinstance(again, dict) else workload


def over(measured: Document, baseline: object) -> Document:
    """The speedup over one baseline; raise KeyError without it."""
    for one in measured["speedups"]:
        if one["baseline"] == baseline:
            return dict(one)
    raise KeyError(f"no speedup over {baseline!r}")


def baseline_used(task: Document, workload: Document) -> str:
    """The baseline that has to be beaten: the task's own, else the one with the least median."""
    if task["baseline"] != "best":
        return str(task["baseline"])
    return str(min((one["baseline_median_ns"], one["baseline"]) for one in workload["speedups"])[1])


def reason_against(task: Document, policy: Document, workload: Document, used: str) -> str | None:
    """The code of the first reason against a workload; None where the rule is met."""
    if not _calm(policy, workload):
        return "NOISE_TOO_HIGH"
    if not _above_floor(policy, workload, workload):
        return "BELOW_FLOOR"
    if not _faster(workload, used, task["minimum_speedup"]):
        return "TOO_SLOW"
    again = workload.get("confirmation")
    if again is None:
        return None
    if not _calm(policy, again):
        return "NOISE_TOO_HIGH"
    return None if _faster(again, used, task["minimum_speedup"]) else "TOO_SLOW"


def denied(task: Document, policy: Document, benchmark: Document, verified: Document) -> Iterator[Difference]:
    """Each promotion rule on measured figures that the evidence doesn't meet."""
    (workload,) = benchmark["workloads"]
    used, least = benchmark["baseline_used"], max(task["minimum_speedup"], policy["minimum_speedup"])
    for name, wanted, met in (
        ("measured shape", repr(task["shape"]), workload["shape"] == task["shape"]),
        ("gates", "every gate passed", _passed(verified)),
        ("not simulated", "a verification on the target", verified["simulated"] is False),
        ("isolation", f"at least {policy['minimum_isolation']}", _walls(policy, benchmark, verified)),
        ("timing authority", f"{_authority(task, policy)} or launch_plan", _clocked(task, policy, workload)),
        (
            "process pairs",
            f"at least {policy['process_pairs']}",
            workload["process_pairs"] >= policy["process_pairs"],
        ),
        ("control", "within the policy's band", _calm(policy, workload)),
        ("floor", "not below the floor", _above_floor(policy, workload, workload)),
        ("speedup", f"lower end at least {least}, no pair lost", _faster(workload, used, least)),
        ("confirmation", f"lower end at least {least} once more", _confirmed(policy, workload, used, least)),
    ):
        if not met:
            yield f"promotion rule {name!r}", wanted, "not met by the evidence named"


def gate_texts(policy: Document, benchmark: Document) -> dict[str, str]:
    """What a promotion's gates say that they observed, of those that quote figures."""
    (workload,) = benchmark["workloads"]
    control, used = workload["control"], benchmark["baseline_used"]
    first, again = over(workload, used)["interval"], workload.get("confirmation")
    texts = {
        "process pairs": f"{workload['process_pairs']} process pairs",
        "control": f"{control['low']:.3f} to {control['high']:.3f}x",
        "floor": f"{workload['candidate']['p90_ns']:.0f} ns",
        "speedup": f"{first['ratio']:.3f}x, 95 % interval {first['low']:.3f} to {first['high']:.3f}x over {used}",
    }
    if again is not None and policy.get("confirmation", _SINCE["confirmation"]):
        found = over(again, used)["interval"]
        texts["confirmation"] = f"{found['ratio']:.3f}x, {found['low']:.3f} to {found['high']:.3f}x"
    return texts


def _calm(policy: Document, measured: Document) -> bool:
    name = "control_half_width" if measured["candidate"]["method"] == "host_slope" else "replay_control_half_width"
    band, control = policy.get(name, _SINCE.get(name)), measured["control"]
    return bool(1 - band <= control["low"] and control["high"] <= 1 + band)


def _above_floor(policy: Document, measured: Document, workload: Document) -> bool:
    return bool(measured["candidate"]["p90_ns"] >= policy["floor_slack"] * workload["floor_ns"])


def _faster(measured: Document, used: object, least: float) -> bool:
    found = over(measured, used)
    return bool(found["interval"]["low"] >= least and found["pairs_lost"] == 0)


def _confirmed(policy: Document, workload: Document, used: object, least: float) -> bool:
    if not policy.get("confirmation", _SINCE["confirmation"]):
        return True
    again = workload.get("confirmation")
    return (
        again is not None
        and again["candidate"]["method"] == workload["candidate"]["method"]
        and again["process_pairs"] >= policy["process_pairs"]
        and _calm(policy, again)
        and _above_floor(policy, again, workload)
        and _faster(again, used, least)
    )


def _passed(verified: Document) -> bool:
    gates = verified["gates"]
    return bool(gates) and all(gate["verdict"] == "passed" for gate in gates)


def _walls(policy: Document, *evidence: Document) -> bool:
    least = _LEVELS.index(policy["minimum_isolation"])
    return all(_LEVELS.index(one["isolation"]["level"]) >= least for one in evidence)


def _authority(task: Document, policy: Document) -> object:
    asked = policy.get("gpu_timing_authority", _SINCE["gpu_timing_authority"])
    return asked if task["target"]["platform"] == "cuda" else "host_slope"


def _clocked(task: Document, policy: Document, workload: Document) -> bool:
    return workload["candidate"]["method"] in (_authority(task, policy), "launch_plan")
