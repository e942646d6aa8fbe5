"""Does it stay inside its operands: no read or write past an end, not a byte written between them?

Every call of every gate is watched for writes; here each input ends where an unreachable page begins, and then begins
where one ends, so that reading past it ends the process. The pages are closed by the guest's own harness: hostile
code can open them again and gains nothing by it, since the bytes are compared all the same.
"""

from collections.abc import Mapping

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd

SHORT, LONG = (2, 16), (16, 2048)
"""Between these, by lot, are widths, odd ones: they leave no slack behind the last element, and bring an input that
ends flush to an odd address. One element is asked beside them."""


def examine(kernel: LoadedKernel) -> Finding:
    """Call beside closed pages, then report on all calls so far."""
    on_host = kernel.device == "cpu"
    placements = (Placement(pages="closed_after"), Placement(pages="closed_before")) if on_host else (PLAIN,)
    for placement in placements:
        for shape in _shapes(kernel):
            checked = kernel.check([kernel.case(shape) for _ in range(2)], placement=placement)
            if isinstance(checked, Failed):
                return checked
    closed = "" if on_host else "; no unreachable pages: inputs are copies in device memory, the sanitizer's to watch"
    return Passed(
        observed=f"{kernel.calls} calls: inputs and red zones untouched{closed}",
        threshold="no byte outside the outputs written, none outside the operands read",
    )


def _shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    widths = 1, *(odd(kernel.rng, *ends) for ends in (SHORT, SHORT, LONG, LONG))
    return [*({**kernel.shape, rows: 3, reduced: width} for width in widths), kernel.shape]


BOUNDS = Gate(name="bounds", examine=examine)
