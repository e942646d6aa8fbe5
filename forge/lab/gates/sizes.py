"""Does it hold at sizes the author wasn't shown: one, primes, around powers of two, and the held-out shapes?"""

from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe

REDUCED = (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257, 997, 1023, 1025, 4095, 4097)
"""Sizes of the axis that is summed over: a missing tail, mask or remainder loop shows at one of them."""
ROWS = (0, 1, 2, 3, 5, 8, 13)


def examine(probe: Probe) -> Finding:
    """Judge each shape once; the smallest that fails is the counterexample."""
    shapes = sorted(
        (*_odd_shapes(probe), *probe.held_out), key=lambda shape: (_elements(shape), sorted(shape.items()))
    )
    errors: list[WorkloadErrors] = []
    for shape in shapes:
        checked = probe.check([probe.case(shape)])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(shapes)} shapes, {len(probe.held_out)} of them held out",
        threshold="1 x the bound at every shape",
        errors=tuple(errors),
    )


def _odd_shapes(probe: Probe) -> list[Mapping[str, int]]:
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    small_rows = min(3, probe.shape[rows])
    by_reduced = [{**probe.shape, rows: small_rows, reduced: size} for size in REDUCED]
    by_rows = [{**probe.shape, rows: count} for count in ROWS if count * probe.shape[reduced] <= 2**20]
    return [*by_reduced, *by_rows]


def _elements(shape: Mapping[str, int]) -> int:
    product = 1
    for size in shape.values():
        product *= size
    return product


SIZES = Gate(name="sizes", examine=examine)
