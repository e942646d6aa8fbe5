"""Computes the quantile of Student's t for the audit, from the closed form for whole degrees of freedom."""

import math
from functools import cache

_WANTED = 0.95
"""Probability between -t and t: the two-sided 95 % interval."""
_HALVINGS = 80
"""Number of steps of the bisection; 53 reach the resolution of a float."""


@cache
def t_975(degrees: int) -> float:
    """Return the 97.5 % quantile for at least one degree of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _between(middle, degrees) < _WANTED else (low, middle)
    return math.tan(low) * math.sqrt(degrees)


def _between(angle: float, degrees: int) -> float:
    """Return the probability of |T| <= t, where tan(angle) is t / sqrt(degrees)."""
    square, odd = math.cos(angle) ** 2, degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + odd, degrees, 2):
        term *= square * (step - 1) / step
        total += term
    value = math.sin(angle) * total
    return 2 / math.pi * (angle + value) if odd else value
