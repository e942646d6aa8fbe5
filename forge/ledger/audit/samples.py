"""Derives every figure of a benchmark from its stored samples.

A document of samples holds attempts. An attempt holds process pairs, a pair holds rounds, a round holds one time for
each side. docs/reading-the-ledger.md explains the same format.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forge.ledger.audit.student_t import t_975

Document = dict[str, Any]  # Any: JSON, doubted field by field where it is compared
Times = list[list[float]]
"""Times in nanoseconds per call, by process pair and round."""

SLOPES = ("host_slope.v1", "host_slope.v2")
"""Protocols with two releases for each side and round, a shorter and a longer one. Newer protocols have one."""
EMPTY_GUEST_PROTOCOLS = ("host_slope.v3", "host_slope.v4")
"""Protocol that also times an empty guest, whose time is subtracted from each side's."""
REPLAYS = ("graph_replay.v1", "graph_replay.v2", "graph_replay.v3", "graph_replay.v4")
"""Protocols that replay a launch plan as a CUDA graph."""
SUPERSEDED = (*SLOPES, "host_slope.v3", *REPLAYS[:-1])
"""Protocols by which a second measurement makes no kernel `replicated`."""
BASELINES = ("eager", "compile", "vendor", "promoted")
"""Kinds of baselines that can be sides of a measurement, besides contenders."""
CONTENDER = "contender:"
"""Beginning of the names of sides that are contenders; they follow the other baselines in order of their names."""
CONTROL_OF = "eager"
"""Baseline that the side `control` measures a second time."""


@dataclass(frozen=True)
class Ratio:
    """A ratio and its interval, computed from the log ratios of the process pairs."""

    logs: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean log ratio."""
        return statistics.fmean(self.logs)

    @property
    def halves(self) -> tuple[float, float]:
        """Return the interval's half-width as a log: exact, and with the old table's last t for over 30 degrees."""
        degrees = len(self.logs) - 1
        error = statistics.stdev(self.logs) / math.sqrt(len(self.logs))
        return t_975(degrees) * error, t_975(min(degrees, 30)) * error

    @property
    def pairs_lost(self) -> int:
        """Return the number of process pairs in which the candidate was slower or equally fast."""
        return sum(log <= 0 for log in self.logs)


@dataclass(frozen=True)
class SampledTimes:
    """One measurement: all attempts of a document, with their process pairs joined."""

    protocol: str
    attempts: Sequence[Document]

    @property
    def method(self) -> str:
        """Return which clock gave the times."""
        return "launch_plan" if self.protocol in REPLAYS else "host_slope"

    @property
    def sides(self) -> set[str]:
        """Return the sides that every attempt timed."""
        return set.intersection(*(_sides(attempt, self.protocol) for attempt in self.attempts))

    def times(self, side: str) -> Times:
        """Return a side's times per call, in nanoseconds."""
        per_call = _by_replay if self.protocol in REPLAYS else _by_slope if self.protocol in SLOPES else _by_release
        return [rounds for attempt in self.attempts for rounds in per_call(attempt, side)]

    @property
    def usable(self) -> bool:
        """Return whether every time is above zero, except those of the empty guest."""
        cold = all(time > 0 for side in self.sides - {"harness"} for pair in self.times(side) for time in pair)
        resident = _resident(self)
        return cold and (resident is None or resident.usable)

    def ratio(self, over: str, side: str) -> Ratio:
        """Return how many times faster a side is than another, paired by round."""
        return ratio_of(self.times(over), self.times(side))


def ratio_of(over: Times, times: Times) -> Ratio:
    """Return how many times shorter `times` are than `over`, paired by round."""
    pairs = zip(over, times, strict=True)
    return Ratio(tuple(statistics.median(math.log(b / s) for b, s in zip(*pair, strict=True)) for pair in pairs))


def first_and_confirmation(document: Document) -> tuple[SampledTimes, SampledTimes | None]:
    """Return both measurements of a stored document; raise ValueError for an unknown protocol."""
    protocol = document["protocol"]
    if protocol not in (known := (*SLOPES, *EMPTY_GUEST_PROTOCOLS, *REPLAYS)):
        raise ValueError(f"samples follow {protocol!r}, expected one of {', '.join(known)}")
    again = document.get("confirmation")
    return SampledTimes(protocol, document["attempts"]), None if again is None else SampledTimes(protocol, again)


def contenders_of(document: Document) -> set[str]:
    """Return the contenders that the newest attempt timed, by the stored samples of a benchmark."""
    sides = _sides(document["attempts"][-1], document["protocol"])
    return {side for side in sides if side.startswith(CONTENDER)}


def summary(taken: SampledTimes, side: str) -> Document:
    """Return count, median, deciles and spread of a side, in nanoseconds, over every round of every pair."""
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
    """Return every figure of a benchmark's workload that follows from its samples and its recorded floor."""
    first, again = first_and_confirmation(document)
    found = _measured(first, first.sides)
    harness = [time for pair in first.times("harness") for time in pair] if "harness" in first.sides else [0.0]
    return found | {
        **({"protocol": document["protocol"]} if recorded.get("protocol") is not None else {}),
        "harness_ns": max(0.0, statistics.median(harness)),
        "floor_fraction": recorded["floor_ns"] / found["candidate"]["median_ns"],
        "rounds": min(map(len, first.times("candidate"))),
        "confirmation": None if again is None else _measured(again, first.sides),
        "replay": _replay(first.attempts) if first.method == "launch_plan" else None,
        **_residency(first, again),
    }


def _residency(first: SampledTimes, again: SampledTimes | None) -> Document:
    """Return what must be said of the resident regime; nothing for samples that are older than it."""
    residence = first.attempts[-1].get("residence")
    if residence is None:
        return {}
    stated = {"cache_bytes": residence["cache_bytes"], "operand_bytes": residence["operand_bytes"]}
    resident = _resident(first)
    if resident is None:
        return {"residency": stated | {"timing": None}}
    twice = None if again is None else _resident(again)
    timing = _measured(resident, first.sides) | {
        "rounds": min(map(len, resident.times("candidate"))),
        "confirmation": None if twice is None else _measured(twice, first.sides),
    }
    return {"residency": stated | {"timing": timing, "why_not": None}}


def _resident(taken: SampledTimes) -> SampledTimes | None:
    """Return the resident samples, if every attempt has them."""
    attempts = [attempt["resident"] for attempt in taken.attempts if attempt.get("resident")]
    return SampledTimes(taken.protocol, attempts) if attempts and len(attempts) == len(taken.attempts) else None


def _measured(taken: SampledTimes, sides: set[str]) -> Document:
    return {
        "candidate": summary(taken, "candidate"),
        "control": taken.ratio(CONTROL_OF, "control"),
        "process_pairs": len(taken.times("candidate")),
        "speedups": [_speedup(taken, baseline) for baseline in baselines_of(sides)],
    }


def baselines_of(sides: set[str]) -> list[str]:
    """Return the baselines among the sides of a measurement, in the order in which events list them."""
    contenders = sorted(side for side in sides if side.startswith(CONTENDER))
    return [*(baseline for baseline in BASELINES if baseline in sides), *contenders]


def _speedup(taken: SampledTimes, baseline: str) -> Document:
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
    """Return a side's time per call without the empty guest's time; for the empty guest, its whole time."""
    empty = side != "harness" and "harness" in pair[0]
    path_ns = statistics.median(times["harness"] for times in pair) if empty else 0
    return [(times[side] - path_ns) / calls for times in pair]
