"""Does it follow its questions from shape to shape: large, small, large again, in an order that nobody can know?

What is kept between calls is kept for the last shape, or for the largest so far: a workspace, a launch plan. Each
shape comes at least twice, with another one in between.
"""

import random

from forge.lab.calls.loaded_candidate import Probe
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import log_uniform

VISITS = 3
WIDTHS = (512, 1280)
"""Between these, by lot, unless the public width is less."""


def examine(probe: Probe) -> Finding:
    """Go around a few shapes, first small between large, then shuffled."""
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    width = max(2, min(probe.shape[reduced], log_uniform(probe.lot, *WIDTHS)))
    shapes = (
        {**probe.shape, rows: 2 * max(4, min(probe.shape[rows], 16)), reduced: width},
        {**probe.shape, rows: 1, reduced: width // 2 + 1},
        {**probe.shape, rows: 3, reduced: width},
        {**probe.shape, rows: 5, reduced: 2 * width + 1},
    )
    order = [0, 1, 0, 1, *_shuffled(len(shapes), probe.lot)]
    for position in order:
        checked = probe.check([probe.case(shapes[position])])
        if isinstance(checked, Failed):
            return checked
    return Passed(
        observed=f"{len(order)} calls around {len(shapes)} shapes",
        threshold="every answer right, whatever came before",
    )


def _shuffled(count: int, lot: random.Random) -> list[int]:
    order = [position for position in range(count) for _ in range(VISITS)]
    lot.shuffle(order)
    return order


SEQUENCES = Gate(name="sequences", examine=examine)
