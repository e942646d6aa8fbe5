"""Does it leave its inputs unchanged during the whole call, without using them as scratch memory and restoring them?

On a CPU the pages of the inputs are read-only during these calls, so that the first write kills the process. A device
works on copies, which come back after the call and are compared. This finds a lasting change, but not one that the
kernel has undone. Inputs that the operation updates are outputs: the judge compares every unwritten element bit by
bit.
"""

from functools import partial

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import Placement
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import configurations, other_paths
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd_size, of_class

LONG_WIDTHS, SHORT_WIDTHS = (513, 1535), (8, 64)
"""Ranges from which two widths besides the public one are drawn at random: a long odd one, and a short multiple of
eight."""
CALLS = 2
"""Number of calls in one release at usual shapes. Larger shapes are asked once, since Triton's interpreter takes
seconds for them."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at the public shape, at two small shapes, in long rows and in many rows.

    At the first three each configuration of an autotuned kernel is asked.
    """
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    on_host = kernel.runner.shares_pages
    placement = Placement(pages="read_only") if on_host else Placement(return_inputs=True)
    rng = kernel.rng
    shapes = kernel.shapes(
        kernel.shape,
        {**kernel.shape, rows: 3, reduced: odd_size(rng, *LONG_WIDTHS)},
        {**kernel.shape, rows: 2, reduced: of_class(rng, *SHORT_WIDTHS, 8, 0)},
    )
    others = other_paths.shapes(kernel)
    for shape in (*shapes, *others):
        count = 1 if shape in others else CALLS
        checked = kernel.check([kernel.case(shape) for _ in range(count)], placement=placement)
        if isinstance(checked, Failed):
            return checked
    tuned = configurations.ask_each(kernel, [partial(kernel.case, shape) for shape in shapes], placement)
    if isinstance(tuned, Failed):
        return tuned
    how = "from read-only pages" if on_host else "with the device's inputs compared afterwards"
    updated = f" but {', '.join(kernel.operation.updates)}" if kernel.operation.updates else ""
    return Passed(
        observed=f"{CALLS * len(shapes) + len(others) + len(tuned)} calls {how}",
        threshold=f"no write to an input{updated}",
    )


MUTATION = Gate(name="mutation", examine=examine)
