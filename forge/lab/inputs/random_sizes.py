"""Draws sizes anew for each examination, so that no list and no earlier refusal tells what will be asked.

Draws are log-uniform, with one or more in each octave. They go through classes of parity and alignment.
"""

import random
from collections.abc import Mapping

CLASSES: tuple[tuple[int, int], ...] = ((2, 1), (4, 2), (8, 4), (16, 8), (16, 0), (2, 1), (128, 0))
"""Moduli and remainders of sizes: what vectors of two, four, eight and sixteen elements leave over, or nothing. Odd
sizes come twice."""
WIDEST = 2**14
"""Number of elements in the widest drawn row. Chosen; the host judges each row of every octave up to it. Other draws
ask wider rows."""
NEAR_ELEMENTS, FAR_ELEMENTS = 2**14, 2**22
"""Number of elements, rows times width, of a shape near the public one. A small public shape is extended to the first
number; the second one is still quick."""
NEAR_ROWS = 64
"""Number of rows of a shape near the public one, at most. Chosen; the width takes the rest of `NEAR_ELEMENTS`, so
more rows would make it narrow."""


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    """Draw a size between the two, both included; each octave is equally likely."""
    return min(high, max(low, int(low * ((high + 1) / low) ** rng.random())))


def of_class(rng: random.Random, low: int, high: int, modulus: int, remainder: int) -> int:
    """Draw a size in the same way among those with this remainder; any size if there is none."""
    first, last = low + (remainder - low) % modulus, high - (high - remainder) % modulus
    if first > last:
        return log_uniform(rng, low, high)
    drawn = log_uniform(rng, low, high)
    return min(last, max(first, drawn - (drawn - remainder) % modulus))


def in_each_octave(rng: random.Random, low: int, high: int, *, draws: int = 1) -> tuple[int, ...]:
    """Draw sizes in each octave between two powers of two; the classes take turns in random order."""
    classes = rng.sample(CLASSES, len(CLASSES))
    sizes: list[int] = []
    while low < high:
        for _ in range(draws):
            sizes.append(of_class(rng, low, 2 * low - 1, *classes[len(sizes) % len(classes)]))
        low *= 2
    return tuple(sizes)


def odd_size(rng: random.Random, low: int, high: int) -> int:
    """Draw an odd size between the two."""
    return of_class(rng, low, high, 2, 1)


def near_shape(shape: Mapping[str, int], rows: str, reduced: str, rng: random.Random) -> dict[str, int]:
    """Draw a shape near the public one, with an odd width and another row count, that no author has seen."""
    budget = max(NEAR_ELEMENTS, min(FAR_ELEMENTS, shape[rows] * shape[reduced]))
    widest = min(max(3, 2 * shape[reduced]), budget - 1)
    width = rng.randrange(1, widest + 1, 2)
    return {**shape, reduced: width, rows: rng.randint(1, min(NEAR_ROWS, budget // width))}
