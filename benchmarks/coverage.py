"""How often recorded 95 % intervals hold the truth: python benchmarks/coverage.py [HOME] [--json].

A control is eager against itself, so its true ratio is exactly 1. Every control on record is computed again from the
raw samples that its event names, those of confirmations too, and counted by whether its interval holds 1. `needed` is
the systematic term: the smallest widening of both ends, in per cent, with which at least 95 % hold it.
"""

import json
import math
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forge.app.workspace import Workspace
from forge.domain.policy import CONTROL_KIND
from forge.events import BenchmarkFailed, BenchmarkRecorded
from forge.lab.timing.cpu_processes import CONTROL
from forge.lab.timing.paired_interval import interval, pair_ratios
from forge.lab.timing.student_t import COVERED
from forge.pipeline.samples import Samples, parse_samples

TYPES = ("BenchmarkRecorded", "BenchmarkFailed")


@dataclass(frozen=True)
class Control:
    """One control's log ratios, pair by pair, and how far its interval ends from holding 1."""

    seq: int
    log_ratios: tuple[float, ...]
    miss: float
    """Distance of the interval from 1, as a log ratio; 0 where it holds 1."""


def controls(home: Path) -> Iterator[Control]:
    """Every recorded control, in the order of its events."""
    with Workspace.open(home, read_only=True) as workspace:
        for recorded in workspace.ledger.read(types=TYPES):
            event = recorded.event
            assert isinstance(event, BenchmarkRecorded | BenchmarkFailed)
            for timing in event.workloads:
                taken = parse_samples(workspace.blobs.get(timing.samples_sha256))
                yield _control(recorded.seq, taken.samples)
                if taken.confirmation is not None:
                    yield _control(recorded.seq, taken.confirmation)


def _control(seq: int, samples: Samples) -> Control:
    log_ratios = pair_ratios(samples.per_call_ns(CONTROL_KIND), samples.per_call_ns(CONTROL))
    found = interval(log_ratios)
    return Control(seq, tuple(log_ratios), max(0.0, math.log(found.low), -math.log(found.high)))


def told(found: list[Control]) -> dict[str, float | int]:
    """The counts; raise ValueError without a control."""
    if not found:
        raise ValueError("no control on record: expected a ledger with benchmarks")
    count, held = len(found), sum(one.miss == 0 for one in found)
    misses = sorted(one.miss for one in found)
    slower = sum(statistics.fmean(one.log_ratios) < 0 for one in found)
    return {
        "controls": count,
        "held": held,
        "share": held / count,
        "p_at_most_so_many": at_most(held, count, COVERED),
        "needed_per_cent": 100 * misses[math.ceil(COVERED * count) - 1],
        "largest_miss_per_cent": 100 * misses[-1],
        "control_slower": slower,
        "p_so_one_sided": min(1.0, 2 * at_most(min(slower, count - slower), count, 0.5)),
    }


def at_most(successes: int, count: int, chance: float) -> float:
    """The probability of at most so many successes: a binomial's lower tail."""
    terms = (math.comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(successes + 1))
    return math.fsum(terms)


def main() -> None:
    """Print the counts, and each control that doesn't hold 1."""
    words = [word for word in sys.argv[1:] if word != "--json"]
    found = list(controls(Path(words[0]) if words else Path(__file__).resolve().parents[1]))
    if "--json" in sys.argv:
        print(json.dumps(told(found), indent=1))
        return
    for name, value in told(found).items():
        print(f"{name:24}{value:.4g}")
    for one in found:
        if one.miss:
            ratios = " ".join(f"{100 * ratio:+.2f}" for ratio in one.log_ratios)
            print(f"event {one.seq}: misses 1 by {100 * one.miss:.3f} %; by pair, in %: {ratios}")


if __name__ == "__main__":
    main()
