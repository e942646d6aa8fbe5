"""Says what a benchmark means as an answer: what was measured, how, and what that says of the baselines."""

from collections.abc import Sequence

from forge.domain.at_floor import AT_FLOOR
from forge.domain.contender_name import is_contender
from forge.domain.reason_codes import UNDECIDED
from forge.ledger.plain_rows import Document

Data = dict[str, object]

FAR_FROM_THE_FLOOR = 0.10
"""Share of its floor below which a baseline is bad. Chosen; such a baseline takes ten times the floor, so a kernel
may be several times faster and still slow."""


def timed(event: Document) -> Data:
    """Return verdict, reason, every workload with its baselines, and the figures of an early stop."""
    reason = event.get("reason")
    return {
        "verdict": _verdict(reason),
        "candidate": event["candidate"],
        "reason": reason,
        "baseline_used": event["baseline_used"],
        "workloads": [_workload(timing) | {"notes": _notes(timing, reason)} for timing in event["workloads"]],
        "contenders": [_contender(one) for one in event.get("contenders", ())],
        "stopped": event.get("stopped"),
    }


def further_shape(event: Document) -> Data:
    """Return the verdict at a further shape, its reason, and the times if there are any."""
    timing = event["timing"]
    return {
        "shape": event["shape"],
        "verdict": _verdict(event["reason"]),
        "reason": event["reason"],
        "baseline_used": event["baseline_used"],
        "timing": _workload(timing) | {"notes": []} if timing else None,
    }


def _verdict(reason: Document | None) -> str:
    return "accepted" if reason is None else "inconclusive" if reason["code"] in UNDECIDED else "rejected"


def _contender(one: Document) -> Data:
    """Return what became of one contender, with its reason in words if it was not measured in full."""
    standing = one["standing"]
    match standing["outcome"]:
        case "in_full":
            said = "measured beside the candidate"
        case "slower":
            said = f"right, and slower than others: about {standing['least_ns'] / 1000:.2f} us"
        case "failed":
            said = f"{standing['reason']['code']}: {standing['reason']['message']}"
        case _:
            said = f"{standing['cause']}: {standing['detail']}"
    named = {name: one[name] for name in ("contender", "package", "version", "licence")}
    return {**named, "outcome": standing["outcome"], "said": said}


def _workload(timing: Document) -> Data:
    confirmation, replay, residency = (timing.get(name) for name in ("confirmation", "replay", "residency"))
    return {
        "shape": timing["shape"],
        "method": timing["candidate"]["method"],
        "candidate_ns": timing["candidate"]["median_ns"],
        "floor_ns": timing["floor_ns"],
        "floor_fraction": timing["floor_fraction"],
        "harness_ns": timing["harness_ns"],
        "control": _bounds(timing["control"]),
        "process_pairs": timing["process_pairs"],
        "rounds": timing["rounds"],
        "baselines": _baselines(timing["speedups"], timing["floor_ns"]),
        "confirmation": _confirmation(confirmation, timing["floor_ns"]) if confirmation else None,
        "replay": _replay(replay) if replay else None,
        "residency": _residency(residency) if residency else None,
    }


def _replay(replay: Document) -> Data:
    """Return the facts of a measurement by graph replay; each state of the device in the order of its names."""
    names = ("plan_sha256", "sets", "set_bytes", "host_ratio", "blocks", "dropped", "gpu_s")
    states = [dict(sorted(state.items())) for state in replay["states"]]
    return {**{name: replay[name] for name in names}, "states": states}


def _bounds(interval: Document) -> list[float]:
    return [interval["low"], interval["high"]]


def _residency(found: Document) -> Data:
    """Return the resident regime's figures, or why it wasn't measured."""
    timing = found["timing"]
    told: Data = {name: found[name] for name in ("cache_bytes", "operand_bytes", "why_not")}
    if timing is None:
        return told | {"timing": None}
    floor_ns, again = timing["floor_ns"], timing.get("confirmation")
    return told | {
        "timing": {
            "candidate_ns": timing["candidate"]["median_ns"],
            "floor_fraction": floor_ns / timing["candidate"]["median_ns"],
            "control": _bounds(timing["control"]),
            "baselines": _baselines(timing["speedups"], floor_ns),
            "confirmation": _confirmation(again, floor_ns) if again else None,
        }
    }


def _baselines(speedups: Sequence[Document], floor_ns: float) -> Data:
    return {
        one["baseline"]: {
            "median_ns": one["baseline_median_ns"],
            "speedup": one["interval"]["ratio"],
            "ci95": _bounds(one["interval"]),
            "pairs_lost": one["pairs_lost"],
            "floor_fraction": floor_ns / one["baseline_median_ns"],
        }
        for one in speedups
    }


def _confirmation(again: Document, floor_ns: float) -> Data:
    return {
        "candidate_ns": again["candidate"]["median_ns"],
        "control": _bounds(again["control"]),
        "process_pairs": again["process_pairs"],
        "baselines": _baselines(again["speedups"], floor_ns),
    }


def _notes(timing: Document, reason: Document | None) -> list[Data]:
    """Return what is to be said of the fastest baseline: whether it is a contender that stands, and near its floor.

    A CPU's floor is only a coarse alarm, and says nothing of a baseline.
    """
    best = min(timing["speedups"], key=lambda one: one["baseline_median_ns"])
    baseline, is_slow = best["baseline"], reason is not None and reason["code"] == "TOO_SLOW"
    if is_slow and is_contender(baseline):
        said = f"{baseline} is what a user would pick instead, and the kernel isn't enough faster than it"
        return [{"code": "contender_stands", "message": said}]
    if timing["candidate"]["method"] != "launch_plan":
        return []
    reached = timing["floor_ns"] / best["baseline_median_ns"]
    if reached < FAR_FROM_THE_FLOOR:
        said = f"the best baseline, {baseline}, reaches {reached:.0%} of its floor: a speedup over it says little"
        return [{"code": "bad_baseline", "message": said}]
    if is_slow and reached >= AT_FLOOR:
        said = (
            f"{baseline} already reaches {reached:.0%} of its floor: no kernel could be more than "
            f"{1 / reached:.2f}x as fast. This is a result about the baseline, not a fault of the kernel"
        )
        return [{"code": "baseline_stands", "message": said}]
    return []
