"""Computes the quantile of Student's t behind every interval."""

import math
from functools import cache

COVERED = 0.95
"""Share of Student's t between the ends of the interval: 2.5 % lie beyond each."""


@cache
def t_975(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t for a whole number of degrees of freedom, to a float's last bits.

    Bisects the angle atan(t / sqrt(degrees)). Raise ValueError for less than one degree.
    """
    if degrees < 1:
        raise ValueError(f"{degrees} degrees of freedom: expected at least 1")
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _probability_within(middle, degrees) < COVERED:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(high)


def _probability_within(angle: float, degrees: int) -> float:
    """Return the probability that |T| < sqrt(degrees) tan(angle): Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    terms: list[float] = []
    for step in range(1 + odd, degrees, 2):
        terms.append(term)
        term *= cosine * cosine * step / (step + 1)
    total = sine * math.fsum(terms)
    return 2 / math.pi * (angle + total) if odd else total
