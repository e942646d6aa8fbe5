"""Compares a replication with its samples, the first measurement and the rule, independent of the pipeline."""

import math
from collections.abc import Iterator

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.rule import (
    baseline_used,
    counted_measurement,
    first_unmet,
    isolated_enough,
    speedup_over,
)
from forge.ledger.audit.samples import Document, workload

UNDECIDED = frozenset(
    {
        "NOISE_TOO_HIGH",
        "CLOCKS_UNSTABLE",
        "GPU_SHARED",
        "CLOCK_DISAGREES",
        "INFRASTRUCTURE",
        "TIMEOUT",
        "OUT_OF_MEMORY",
    }
)
"""Reasons that say nothing about the kernel."""
_ABOUT_FIGURES = ("BELOW_FLOOR", "NOT_REPLICATED", "TOO_SLOW")
"""Reason codes that rest on figures: a replication that ended with one of them must record figures."""


def replication_differences(
    event: Document, first: Document, task: Document, policy: Document | None, samples: Document | None
) -> Iterator[Difference]:
    """Yield each field of a replication that differs from what its samples and the first measurement give."""
    reason = event["reason"]["code"] if event["reason"] else None
    yield from differences(_outcome(reason), event["outcome"], "outcome")
    if not event["workloads"]:
        if reason in _ABOUT_FIGURES or event["comparisons"]:
            yield "workloads", "the figures that were compared", "none"
        return
    (second,), (recorded,) = event["workloads"], first["workloads"]
    yield from differences(recorded["shape"], second["shape"], "workloads[0].shape")
    if samples is None:
        return
    yield from differences(workload(samples, second), second, "workloads[0]")
    used = baseline_used(task, second)
    yield from differences(used, event["baseline_used"], "baseline_used")
    for one in event["comparisons"]:
        yield from _compared(one, first, second)
    yield from differences(
        _regimes(task, first, second), [_regime(one) for one in event["comparisons"]], "comparisons"
    )
    if policy is not None:
        yield from _weaker_wall(event, policy)
        unmet = first_unmet(task, policy, second, used)
        against = unmet and unmet.code
        if (unmet is None or unmet.is_undecided_speedup) and not all(map(_agree, event["comparisons"])):
            against = "NOT_REPLICATED"
        yield from differences(against, reason, "reason.code")


def _regimes(task: Document, first: Document, second: Document) -> list[tuple[object, object]]:
    """Return regime and baseline of each comparison that the two measurements allow: none may be left out."""
    (recorded,) = first["workloads"]
    found: list[tuple[object, object]] = [("cold", first["baseline_used"])]
    then, now = ((one.get("residency") or {}).get("timing") for one in (recorded, second))
    if then is not None and now is not None:
        fastest = baseline_used(task, then)
        if any(one["baseline"] == fastest for one in now["speedups"]):
            found.append(("resident", fastest))
    return found


def _regime(one: Document) -> tuple[object, object]:
    return one["regime"], one["baseline"]


def _weaker_wall(event: Document, policy: Document) -> Iterator[Difference]:
    """Yield the wall of a replication that held behind a weaker one than the policy asks for."""
    if event["outcome"] == "held" and not isolated_enough(policy, event):
        yield "isolation.level", f"at least {policy['minimum_isolation']}", str(event["isolation"]["level"])


def _outcome(reason: str | None) -> str:
    if reason is None:
        return "held"
    return "inconclusive" if reason in UNDECIDED else "contradicted"


def _compared(one: Document, first: Document, second: Document) -> Iterator[Difference]:
    """Yield the differences of a recorded comparison from the two measurements that it compares."""
    (recorded,) = first["workloads"]
    if one["regime"] == "resident":
        recorded, second = recorded["residency"]["timing"], second["residency"]["timing"]
    counted = counted_measurement(recorded)
    expected = {
        "first": speedup_over(counted, one["baseline"])["interval"],
        "first_pairs": counted["process_pairs"],
        "second": speedup_over(second, one["baseline"])["interval"],
        "second_pairs": second["process_pairs"],
    }
    if one.get("kernel_ratio") is not None:
        expected["kernel_ratio"] = second["candidate"]["median_ns"] / counted["candidate"]["median_ns"]
    yield from differences(expected, one, "comparisons")


def _agree(one: Document) -> bool:
    first, second, allowed = one["first"], one["second"], math.log1p(one["session_spread"])
    if math.log(first["low"] / second["high"]) > allowed:
        return False
    kernel_ratio = one.get("kernel_ratio")  # absent where a slower baseline wasn't excused yet
    same_kernel = kernel_ratio is not None and abs(math.log(kernel_ratio)) <= allowed
    return same_kernel or math.log(second["low"] / first["high"]) <= allowed
