"""Does it stay inside its operands: no read or write past an end, and no byte written between them?

The host checks for stray writes after every call of every gate. This gate first places each input directly before an
unreachable page, then directly behind one. A read past an end then kills the process. The guest's own harness closes
the pages. Hostile code can open them again, but gains nothing: the host still compares the bytes.
"""

from collections.abc import Mapping
from functools import partial

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import configurations, other_paths
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd_size

SHORT_WIDTHS, LONG_WIDTHS = (2, 16), (16, 2048)
"""Ranges from which odd widths are drawn at random. An odd width leaves no slack behind the last element, and puts an
input that ends at a page on an odd address. Width one is asked as well."""
CALLS = 2
"""Number of calls in one release at usual shapes, each on operands of its own. Larger shapes are asked once, since
Triton's interpreter takes seconds for them."""
WITH_EACH = 4
"""Number of shapes at which each configuration of an autotuned kernel is asked. Chosen: width one, both short widths
and a long one; each costs a call of three rows for each configuration."""


def examine(kernel: LoadedKernel) -> Finding:
    """Make calls beside closed pages, then report on all calls so far."""
    on_host = kernel.runner.shares_pages
    placements = (Placement(pages="closed_after"), Placement(pages="closed_before")) if on_host else (PLAIN,)
    left_out = 0
    for placement in placements:
        others = other_paths.shapes(kernel, modulus=2, remainder=1)
        shapes = *_shapes(kernel), *others
        fitting = [one for one in shapes if placement.pages != "closed_after" or may_end_at_a_page(kernel, one)]
        left_out += len(shapes) - len(fitting)
        for shape in fitting:
            count = 1 if shape in others else CALLS
            checked = kernel.check([kernel.case(shape) for _ in range(count)], placement=placement)
            if isinstance(checked, Failed):
                return checked
        draws = [partial(kernel.case, shape) for shape in fitting[:WITH_EACH]]
        tuned = configurations.ask_each(kernel, draws, placement)
        if isinstance(tuned, Failed):
            return tuned
    closed = "" if on_host else "; no unreachable pages: inputs are copies in device memory, the sanitizer's to watch"
    aligned = f"; {left_out} shapes not put before a page's end (alignment)" if left_out else ""
    return Passed(
        observed=f"{kernel.calls} calls: inputs and red zones untouched{closed}{aligned}",
        threshold="no byte outside the outputs written, none outside the operands read",
    )


def _shapes(kernel: LoadedKernel) -> tuple[Mapping[str, int], ...]:
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    widths = 1, *(odd_size(kernel.rng, *ends) for ends in (SHORT_WIDTHS, SHORT_WIDTHS, LONG_WIDTHS, LONG_WIDTHS))
    return kernel.shapes(*({**kernel.shape, rows: 3, reduced: width} for width in widths), kernel.shape)


def may_end_at_a_page(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    """Return whether inputs that end at a page begin at addresses that the operation and the domain allow."""
    sizes = (form.at(0).size_bytes for form in kernel.forms(shape)[0])
    return all(size % kernel.inside.address_bytes == 0 for size in sizes)


BOUNDS = Gate(name="bounds", examine=examine)
