"""The workloads that an operation is used at, asked beside the public one: a kernel may be right at that one alone.

Where many rows would take long to draw and to judge, they repeat a few; the rows that are judged are drawn by lot.
"""

import math
from collections.abc import Mapping
from typing import Literal

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.gates.large_offsets import at_rows, repeated, rows_stand_for_all

MOST_ELEMENTS: dict[Literal["cpu", "cuda"], int] = {"cpu": 2**25 + 2**16, "cuda": 2**28}
"""Of all operands of one call: moving more takes too long."""
MOST_FLOPS: dict[Literal["cpu", "cuda"], int] = {"cpu": 2**29, "cuda": 2**36}
"""Of one call, likewise."""
INTERPRETED_ELEMENTS = 2**15
JUDGED_ELEMENTS = 2**21
"""Of all operands, up to which every row is drawn and judged."""
ROWS_DRAWN = (127, 13, 5)
"""Prime; the first that is quickly drawn."""
ROWS_JUDGED = 24
"""Beside the first two and the last two."""


def ask(kernel: LoadedKernel) -> str | Failed:
    """Ask at each listed workload that costs little enough; what was asked, in words."""
    others = [shape for shape in kernel.operation.workloads if dict(shape) != dict(kernel.shape)]
    asked = [shape for shape in others if _is_affordable(kernel, shape)]
    for shape in asked:
        failed = _asked(kernel, shape)
        if failed is not None:
            return failed
    left = f", {len(others) - len(asked)} not asked (cost)" if len(asked) < len(others) else ""
    return f"{len(asked)} other listed workloads{left}"


def _is_affordable(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    elements = _elements(kernel, shape)
    if elements > (INTERPRETED_ELEMENTS if kernel.interpreted else MOST_ELEMENTS[kernel.device]):
        return False
    if elements > JUDGED_ELEMENTS and not rows_stand_for_all(kernel.operation):
        return False
    return kernel.operation.flops(shape) <= MOST_FLOPS[kernel.device] and kernel.fits(shape, 1)


def _asked(kernel: LoadedKernel, shape: Mapping[str, int]) -> Failed | None:
    if _elements(kernel, shape) <= JUDGED_ELEMENTS:
        checked = kernel.check([kernel.case(shape)])
        return checked if isinstance(checked, Failed) else None
    count, row = shape[kernel.operation.row_axis], _elements(kernel, {**shape, kernel.operation.row_axis: 1})
    drawn = min(count, next((rows for rows in ROWS_DRAWN if rows * row <= JUDGED_ELEMENTS), 1))
    observed = kernel.call([repeated(kernel, dict(shape), drawn)])
    if isinstance(observed, Failed):
        return observed
    ends = {0, min(1, count - 1), max(0, count - 2), count - 1}
    chosen = sorted(ends | {kernel.rng.randrange(count) for _ in range(min(ROWS_JUDGED, count))})
    return kernel.judge(at_rows(kernel, observed[0], chosen))[1]


def _elements(kernel: LoadedKernel, shape: Mapping[str, int]) -> int:
    return sum(math.prod(spec.sizes(shape)) for spec in (*kernel.operation.inputs, *kernel.operation.returned))
