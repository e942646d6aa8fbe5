"""How often luck alone would promote a kernel: python benchmarks/chance.py [SESSIONS].

Each simulated session hands in three finalists that are exactly as fast as what they replace. Each is measured, and
once more for its confirmation; both intervals are made from pairs drawn with replacement from one recorded control,
which is a baseline against itself, with a random sign. A finalist is promoted if both lower ends reach the minimum
speedup. Printed is the number of sessions with a promotion, for some minimum speedups.
"""

import random
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from forge.lab.timing.paired_interval import interval

ROOT = Path(__file__).resolve().parent.parent
FINALISTS = 3
MINIMUMS = (1.0, 1.01, 1.05, 1.1)
SEED = 20261125


def recorded(home: Path) -> list[tuple[float, ...]]:
    """The log ratios of each recorded control."""
    coverage = runpy.run_path(str(ROOT / "benchmarks" / "coverage.py"))
    return [one.log_ratios for one in coverage["controls"](home)]


def promoted(controls: Sequence[Sequence[float]], sessions: int, rng: random.Random) -> dict[float, int]:
    """Minimum speedup -> the number of sessions in which luck promoted a finalist."""

    def lower_end() -> float:
        one, sign = rng.choice(controls), rng.choice((1, -1))
        return interval([sign * rng.choice(one) for _ in one]).low

    counts = dict.fromkeys(MINIMUMS, 0)
    for _ in range(sessions):
        best = max(min(lower_end(), lower_end()) for _ in range(FINALISTS))
        for minimum in MINIMUMS:
            counts[minimum] += best >= minimum
    return counts


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    controls = recorded(ROOT)
    print(f"{sessions} sessions over {len(controls)} recorded controls")
    for minimum, count in promoted(controls, sessions, random.Random(SEED)).items():
        print(f"minimum speedup {minimum:.2f}: {count} with a promotion")


if __name__ == "__main__":
    main()
