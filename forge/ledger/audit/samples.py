"""The audit's view of stored samples: what each side took per call, and every figure that follows from it.

A document of samples holds attempts; an attempt holds process pairs, a pair rounds, a round one time a side. See
docs/reading-the-ledger.md, which says the same in words.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forge.ledger.audit.student_t import t_975

Document = dict[str, Any]  # Any: JSON, doubted field by field where it is compared
Times = list[list[float]]
"""Nanoseconds per call, by process pair and round."""

SLOPES = ("host_slope.v1", "host_slope.v2")
"""Two releases of each side and round, a shorter and a longer one; the newer protocol has one."""
BESIDE_AN_EMPTY_GUEST = "host_slope.v3"
REPLAYS = ("graph_replay.v1", "graph_replay.v2", "graph_replay.v3")
BASELINES = ("eager", "compile", "vendor", "promoted")
CONTROL_OF = "eager"
"""The baseline that the side `control` measures once more."""


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval, as the pairs' log ratios give it."""

    logs: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean log ratio."""
        return statistics.fmean(self.logs)

    @property
    def halves(self) -> tuple[float, float]:
        """The interval's half-width as a log, exact, and with the table's last t for more than 30 degrees."""
        degrees = len(self.logs) - 1
        error = statistics.stdev(self.logs) / math.sqrt(len(self.logs))
        return t_975(degrees) * error, t_975(min(degrees, 30)) * error

    @property
    def pairs_lost(self) -> int:
        """Process pairs in which the candidate was the slower one, or as slow."""
        return sum(log <= 0 for log in self.logs)


@dataclass(frozen=True)
class Taken:
    """One measurement: all attempts of a document, joined pair after pair."""

    protocol: str
    attempts: Sequence[Document]

    @property
    def method(self) -> str:
        """Whose word the times are."""
        return "launch_plan" if self.protocol in REPLAYS else "host_slope"

    @property
    def sides(self) -> set[str]:
        """What every attempt timed."""
        return set.intersection(*(_sides(attempt, self.protocol) for attempt in self.attempts))

    def times(self, side: str) -> Times:
        """A side's time per call."""
        per_call = _by_replay if self.protocol in REPLAYS else _by_slope if self.protocol in SLOPES else _by_release
        return [rounds for attempt in self.attempts for rounds in per_call(attempt, side)]

    @property
    def usable(self) -> bool:
        """Whether every time but the path's own is above zero."""
        return all(time > 0 for side in self.sides - {"harness"} for pair in self.times(side) for time in pair)

    def ratio(self, over: str, side: str) -> Ratio:
        """How many times faster a side is than another, paired by round."""
        pairs = zip(self.times(over), self.times(side), strict=True)
        return Ratio(
            tuple(statistics.median(math.log(b / s) for b, s in zip(*pair, strict=True)) for pair in pairs),
        )


def first_and_confirmation(document: Document) -> tuple[Taken, Taken | None]:
    """Both measurements of a stored document; raise ValueError for a protocol that isn't known."""
    protocol = document["protocol"]
    if protocol not in (known := (*SLOPES, BESIDE_AN_EMPTY_GUEST, *REPLAYS)):
        raise ValueError(f"samples follow {protocol!r}, expected one of {', '.join(known)}")
    again = document.get("confirmation")
    return Taken(protocol, document["attempts"]), None if again is None else Taken(protocol, again)


def summary(taken: Taken, side: str) -> Document:
    """Count, median, deciles and spread over every round of every pair."""
    flat = sorted(time for pair in taken.times(side) for time in pair)
    median = statistics.median(flat)
    deciles = statistics.quantiles(flat, n=10, method="inclusive")
    return {
        "n": len(flat),
        "median_ns": median,
        "p10_ns": deciles[0],
        "p90_ns": deciles[-1],
        "mad_ns": statistics.median(abs(time - median) for time in flat),
        "method": taken.method,
    }


def workload(document: Document, recorded: Mapping[str, Any]) -> Document:
    """Every figure of a benchmark's workload that follows from its samples and its recorded floor."""
    first, again = first_and_confirmation(document)
    found = _measured(first, first.sides)
    harness = [time for pair in first.times("harness") for time in pair] if "harness" in first.sides else [0.0]
    return found | {
        "harness_ns": max(0.0, statistics.median(harness)),
        "floor_fraction": recorded["floor_ns"] / found["candidate"]["median_ns"],
        "rounds": min(map(len, first.times("candidate"))),
        "confirmation": None if again is None else _measured(again, first.sides),
        "replay": _replay(first.attempts) if first.method == "launch_plan" else None,
    }


def _measured(taken: Taken, sides: set[str]) -> Document:
    return {
        "candidate": summary(taken, "candidate"),
        "control": taken.ratio(CONTROL_OF, "control"),
        "process_pairs": len(taken.times("candidate")),
        "speedups": [_speedup(taken, baseline) for baseline in BASELINES if baseline in sides],
    }


def _speedup(taken: Taken, baseline: str) -> Document:
    ratio = taken.ratio(baseline, "candidate")
    median_ns = statistics.median(time for pair in taken.times(baseline) for time in pair)
    return {
        "baseline": baseline,
        "baseline_median_ns": median_ns,
        "interval": ratio,
        "pairs_lost": ratio.pairs_lost,
    }


def _replay(attempts: Sequence[Document]) -> Document:
    states = [state for attempt in attempts for state in attempt["states"]]
    return {
        "sets": attempts[-1]["sets"],
        "set_bytes": attempts[-1]["set_bytes"],
        "host_ratio": [ratio for attempt in attempts for ratio in attempt["host_ratio"]],
        "states": [states[0], states[-1]] if states else [],
        "blocks": sum(attempt["blocks"] for attempt in attempts),
        "dropped": sum(attempt["dropped"] for attempt in attempts),
        "gpu_s": sum(attempt["device_ns"] for attempt in attempts) / 1e9,
    }


def _sides(attempt: Document, protocol: str) -> set[str]:
    return set(attempt["sides"] if protocol in REPLAYS else attempt["pairs"][0][0])


def _by_replay(attempt: Document, side: str) -> Times:
    place, calls = attempt["sides"].index(side), attempt["calls"][side]
    return [[times[place] / calls for times in pair] for pair in attempt["pairs"]]


def _by_slope(attempt: Document, side: str) -> Times:
    calls = attempt["many_calls"] - attempt["few_calls"]
    return [_slopes([times[side] for times in pair], calls) for pair in attempt["pairs"]]


def _slopes(pair: list[list[int]], calls: int) -> list[float]:
    constant_ns = statistics.median(few for few, _ in pair)
    return [(many - constant_ns) / calls for _, many in pair]


def _by_release(attempt: Document, side: str) -> Times:
    return [_beyond_the_path(pair, side, attempt["calls"]) for pair in attempt["pairs"]]


def _beyond_the_path(pair: list[dict[str, int]], side: str, calls: int) -> list[float]:
    """A side's releases less what the empty guest takes, per call; of the empty guest itself, the whole."""
    empty = side != "harness" and "harness" in pair[0]
    path_ns = statistics.median(times["harness"] for times in pair) if empty else 0
    return [(times[side] - path_ns) / calls for times in pair]
