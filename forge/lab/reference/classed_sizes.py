"""Draws held-out sizes of every kind that a kernel may treat by code of its own.

A few random sizes miss a fault at one remainder, or in one range of sizes, more often than not.
"""

import itertools
import random

from forge.domain.own_operation import BATCH, Contract
from forge.domain.tensors import Shape
from forge.lab.inputs.random_sizes import log_uniform, of_class

TILE, BATCH_TILE = 16, 8
"""Numbers of which a declared size and a batch have each remainder once, and the smallest such sizes. Vectors and
small tiles divide them. In smaller sizes, a normalisation leaves little but rounding."""
BLOCKS = (16, 32, 64, 128, 256)
"""Numbers of rows that a block of a kernel often has: a batch of one more leaves one row to the last block."""
MOST_CALL_BYTES = 2**22
"""Size of one call in bytes of such a shape, at most. Chosen; each shape costs calls of the reference and of every
candidate."""


def classed_shapes(contract: Contract, rng: random.Random, *, most_batch: int) -> list[Shape]:
    """Return shapes with each remainder of each declared size and of the batch, and a size in each octave.

    Powers of two in a declared range are among them, and the sizes beside them. Each shape takes one such size on
    every axis, in random order.
    """
    sizes = {one.name: _of_a_range(rng, max(one.low, min(TILE, one.high)), max(1, one.high)) for one in contract.axes}
    if contract.varies and BATCH not in sizes:
        highest = max(2 * BATCH_TILE - 1, min(most_batch, contract.batch))
        of_tiles = [of_class(rng, BATCH_TILE, highest, BATCH_TILE, rest) for rest in range(BATCH_TILE)]
        sizes[BATCH] = [*of_tiles, *(rows + 1 for rows in BLOCKS)]
    shuffled = {axis: rng.sample(found, len(found)) for axis, found in sizes.items()}
    count = max(map(len, shuffled.values()), default=0)
    shapes = [
        {**contract.shape, **{axis: found[place % len(found)] for axis, found in shuffled.items()}}
        for place in range(count)
    ]
    return [one for one in shapes if contract.bytes_at(one) <= MOST_CALL_BYTES]


def _of_a_range(rng: random.Random, low: int, high: int) -> list[int]:
    """Return sizes with each remainder of a tile, one in each octave, powers of two and those beside, low to high."""
    powers = [2**power for power in range(high.bit_length()) if low <= 2**power <= high]
    octaves = [log_uniform(rng, *ends) for ends in itertools.pairwise((low, *powers, high))]
    classed = [of_class(rng, low, high, TILE, rest) for rest in range(TILE)]
    beside = [size for power in powers if power >= TILE for size in (power - 1, power + 1) if low <= size <= high]
    return list(dict.fromkeys((*classed, *octaves, *powers, *beside)))
