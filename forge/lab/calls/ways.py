"""Chooses the ways in which a guest makes calls: those of many programs, in few calls."""

from collections.abc import Iterator

from forge.lab.inputs.seeded import Seeded
from forge.sandbox.ways import NO_WAYS, Ways

_AT_RANDOM = (Ways.GRADIENTS, Ways.COLLECTED)
"""Ways in which any call may be made, since they change no operand and no memory."""
_CHANCE = 0.5
"""Chance of each of them."""
_FIRST_ROW = (0, 1, 2, 4)
"""Places of seven. Take it with its shifts around, and a row of no places. Then any two places are in some row
together, in some row each alone, and in some row neither (Paley's construction of a Hadamard matrix)."""


def at_random(rng: Seeded, *, gradients: bool) -> Ways:
    """Return ways of usual calls, each with half a chance. A module's weights may need gradients."""
    chosen = NO_WAYS
    for way in _AT_RANDOM:
        chosen |= way if rng.random() < _CHANCE else NO_WAYS
    return chosen if gradients else chosen & ~Ways.GRADIENTS


def in_pairs(rng: Seeded, *, gradients: bool) -> Iterator[Ways]:
    """Yield eight choices of ways: any two of the seven are in it together, each alone, and neither."""
    ways = list(Ways)
    rng.shuffle(ways)
    rows = [{(one + shift) % len(ways) for one in _FIRST_ROW} for shift in range(len(ways))]
    for row in (*rows, set[int]()):
        chosen = NO_WAYS
        for place in row:
            chosen |= ways[place]
        records = gradients and Ways.INFERENCE not in chosen
        yield chosen if records else chosen & ~Ways.GRADIENTS
