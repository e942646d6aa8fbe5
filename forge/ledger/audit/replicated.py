"""Compares a replication with its samples, the first measurement and the rule, independent of the pipeline."""

import math
from collections.abc import Iterator

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.rule import baseline_used, counted_measurement, reason_against, speedup_over
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


def replication_differences(
    event: Document, first: Document, task: Document, policy: Document | None, samples: Document | None
) -> Iterator[Difference]:
    """Yield each field of a replication that differs from what its samples and the first measurement give."""
    reason = event["reason"]["code"] if event["reason"] else None
    yield from differences(_outcome(reason), event["outcome"], "outcome")
    if not event["workloads"] or samples is None:
        return
    (second,) = event["workloads"]
    yield from differences(workload(samples, second), second, "workloads[0]")
    used = baseline_used(task, second)
    yield from differences(used, event["baseline_used"], "baseline_used")
    for one in event["comparisons"]:
        yield from _compared(one, first, second)
    if policy is not None:
        against = reason_against(task, policy, second, used)
        apart = any(not _agree(one) for one in event["comparisons"])
        yield from differences(against or ("NOT_REPLICATED" if apart else None), reason, "reason.code")


def _outcome(reason: str | None) -> str:
    if reason is None:
        return "held"
    return "inconclusive" if reason in UNDECIDED else "contradicted"


def _compared(one: Document, first: Document, second: Document) -> Iterator[Difference]:
    """Compare the two sides of a comparison with the two measurements."""
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
    yield from differences(expected, one, "comparisons")


def _agree(one: Document) -> bool:
    first, second = one["first"], one["second"]
    gap = max(math.log(first["low"] / second["high"]), math.log(second["low"] / first["high"]))
    return gap <= math.log1p(one["session_spread"])
