"""How often chance meets the rule, by one look and by several: python benchmarks/repeated_looks.py [--speedup X].

Forge looks once at an interval that can't tell. Here the next attempt may add its process pairs to it instead. Log
ratios of pairs are drawn from a normal distribution around the true speedup, by default the threshold. Its spread is
given in control's bands.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable
from functools import partial

from forge.lab.timing.paired_interval import interval

BAND, PAIRS, MINIMUM = 0.02, 5, 1.10
"""Width of the control's band, process pairs of an attempt, and the threshold."""
SPREADS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
"""Standard deviations of a pair's log ratio, in control's bands."""


def wins(draw: Callable[[], float], *, looks: int) -> bool:
    """Return whether the rule is met at one of the looks, before one that can tell says otherwise."""
    logs: list[float] = []
    for _ in range(looks):
        logs += [draw() for _ in range(PAIRS)]
        found = interval(logs)
        if found.low >= MINIMUM and min(logs) > 0:
            return True
        tells = found.high < MINIMUM or found.low >= MINIMUM or math.log(found.high / found.low) / 2 <= BAND
        if tells or min(logs) <= 0:
            return False
    return False


def main() -> int:
    """Print the shares of runs that meet the rule, and with a confirmation that is looked at in the same way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--looks", type=int, default=8, help="attempts of one run")
    parser.add_argument("--speedup", type=float, default=MINIMUM, help="the true speedup")
    trials, looks = (given := parser.parse_args()).trials, given.looks
    rng = random.Random(1)
    for spread in SPREADS:
        draw = partial(rng.gauss, math.log(given.speedup), spread * BAND)
        one, several = (sum(wins(draw, looks=most) for _ in range(trials)) / trials for most in (1, looks))
        print(
            f"spread {spread:.1f} bands: 1 look {one:.1%}, up to {looks} {several:.1%}; "
            f"confirmed alike {one**2:.2%} and {several**2:.2%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
