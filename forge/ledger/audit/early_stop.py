"""Checks early stops of benchmarks from their samples, independent of the pipeline.

A stop refuses a candidate after one process pair. It must follow from that pair by the rule that it names.
"""

import math
import statistics
from collections.abc import Iterator

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.samples import CONTROL_OF, Document, SampledTimes, baselines_of, first_and_confirmation

_LIMITS = {"first_pair.v1": 0.7}
"""Rule of a stop -> the ratio that the most favourable reading must be below."""
_ROUNDS_FIELDS = {"host_slope": "rounds", "launch_plan": "replay_rounds"}
"""Clock -> the policy's field with the number of rounds that a pair has at least."""


def stop_differences(
    event: Document, task: Document, policy: Document | None, samples: Document
) -> Iterator[Difference]:
    """Yield each field of a stopped benchmark that differs from what its samples and the rule give."""
    stop = event["stopped"]
    limit = _LIMITS.get(stop["rule"])
    if limit is None:
        yield "stopped.rule", ", ".join(_LIMITS), str(stop["rule"])
        return
    taken, again = first_and_confirmation(samples)
    pairs = len(taken.times("candidate"))
    if (len(taken.attempts), pairs) != (1, 1) or again is not None or not taken.usable:
        yield "stopped", "one attempt of one process pair, with times above zero", f"{pairs} pairs"
        return
    used = task["baseline"] if task["baseline"] != "best" else _fastest(taken)
    expected = _figures(taken, used) | {"shape": task["shape"], "limit": limit, "protocol": taken.protocol}
    yield from differences(expected, stop, "stopped")
    stated = {"baseline_used": event["baseline_used"], "code": event["reason"]["code"]}
    yield from differences({"baseline_used": used, "code": "TOO_SLOW"}, stated, "stopped")
    if event["workloads"]:
        yield "stopped.workloads", "none: an interval needs more pairs", f"{len(event['workloads'])}"
    if not expected["most_favourable"] < limit:
        yield (
            "stopped.most_favourable",
            f"below {limit}, or the pairs that are missing",
            repr(stop["most_favourable"]),
        )
    if taken.attempts[0].get("dropped", 0):
        yield "stopped", "a pair without a block left out", f"{taken.attempts[0]['dropped']} left out"
    if policy is not None and stop["rounds"] < policy[_ROUNDS_FIELDS[taken.method]]:
        yield "stopped.rounds", f"at least {policy[_ROUNDS_FIELDS[taken.method]]}", repr(stop["rounds"])


def _figures(taken: SampledTimes, used: str) -> Document:
    (candidate,), (baseline,) = taken.times("candidate"), taken.times(used)
    (eager,), (control,) = taken.times(CONTROL_OF), taken.times("control")
    ratios, own = _logs(baseline, candidate), _logs(eager, control)
    ratio, error = statistics.median(ratios), _error_of_median(ratios)
    off, control_error = statistics.median(own), _error_of_median(own)
    device_ns = taken.attempts[0].get("device_ns")
    return {
        "method": taken.method,
        "baseline": used,
        "baseline_median_ns": statistics.median(baseline),
        "candidate_median_ns": statistics.median(candidate),
        "ratio": math.exp(ratio),
        "error": error,
        "control": math.exp(off),
        "control_error": control_error,
        "most_favourable": math.exp(ratio + 4 * (error + control_error) + abs(off)),
        "rounds": len(ratios),
        "gpu_s": None if device_ns is None else device_ns / 1e9,
    }


def _logs(over: list[float], side: list[float]) -> list[float]:
    return [math.log(one / other) for one, other in zip(over, side, strict=True)]


def _error_of_median(logs: list[float]) -> float:
    """Return a median's standard error: that of a mean, times the root of pi / 2 for normal noise."""
    return math.sqrt(math.pi / 2) * statistics.stdev(logs) / math.sqrt(len(logs))


def _fastest(taken: SampledTimes) -> str:
    return min(baselines_of(taken.sides), key=lambda side: (statistics.median(taken.times(side)[0]), side))
