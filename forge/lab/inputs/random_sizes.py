"""Sizes drawn anew for each examination, so that no list, and no earlier refusal, says what will be asked.

Draws are log-uniform, one or more in each octave, and go around classes of parity and alignment.
"""

import random
from collections.abc import Mapping

CLASSES: tuple[tuple[int, int], ...] = ((2, 1), (4, 2), (8, 4), (16, 8), (16, 0), (2, 1), (128, 0))
"""Moduli and rests: what is left over by vectors of two, four, eight and sixteen elements, or by none; odd ones
twice."""
WIDEST = 2**14
"""Elements: wider rows are asked by draws of their own."""
NEAR_ELEMENTS, FAR_ELEMENTS = 2**14, 2**22
"""Elements of rows times width near a public shape: at least what a small one may have, at most what is quick."""
NEAR_ROWS = 64


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    """A size between the two, both included: each octave is as likely as another."""
    return min(high, max(low, int(low * ((high + 1) / low) ** rng.random())))


def of_class(rng: random.Random, low: int, high: int, modulus: int, rest: int) -> int:
    """Likewise, of the sizes that leave this rest; any size where none between the two does."""
    first, last = low + (rest - low) % modulus, high - (high - rest) % modulus
    if first > last:
        return log_uniform(rng, low, high)
    drawn = log_uniform(rng, low, high)
    return min(last, max(first, drawn - (drawn - rest) % modulus))


def in_each_octave(rng: random.Random, low: int, high: int, *, draws: int = 1) -> tuple[int, ...]:
    """So many sizes in each octave between two powers of two; classes come in turn, in an order of chance."""
    classes = rng.sample(CLASSES, len(CLASSES))
    sizes: list[int] = []
    while low < high:
        for _ in range(draws):
            sizes.append(of_class(rng, low, 2 * low - 1, *classes[len(sizes) % len(classes)]))
        low *= 2
    return tuple(sizes)


def odd(rng: random.Random, low: int, high: int) -> int:
    """An odd size between the two."""
    return of_class(rng, low, high, 2, 1)


def near(shape: Mapping[str, int], rows: str, reduced: str, rng: random.Random) -> dict[str, int]:
    """A shape near the public one that no author is shown: an odd width, another row count."""
    budget = max(NEAR_ELEMENTS, min(FAR_ELEMENTS, shape[rows] * shape[reduced]))
    widest = min(max(3, 2 * shape[reduced]), budget - 1)
    width = rng.randrange(1, widest + 1, 2)
    return {**shape, reduced: width, rows: rng.randint(1, min(NEAR_ROWS, budget // width))}
