"""Does it leave its inputs unchanged during the whole call, without using them as scratch memory and restoring them?

On a CPU the pages of the inputs are read-only during these calls, so that the first write kills the process. A device
works on copies, which come back after the call and are compared. This finds a lasting change, but not one that the
kernel has undone. Inputs that the operation updates are outputs: the judge compares every unwritten element bit by
bit.
"""

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import Placement
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd_size, of_class

LONG_WIDTHS, SHORT_WIDTHS = (513, 1535), (8, 64)
"""Ranges from which two widths besides the public one are drawn at random: a long odd one, and a short multiple of
eight."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at the public shape, at two small shapes, in long rows and in many rows."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    on_host = kernel.runner.shares_pages
    placement = Placement(pages="read_only") if on_host else Placement(return_inputs=True)
    rng = kernel.rng
    shapes = kernel.shapes(
        kernel.shape,
        {**kernel.shape, rows: 3, reduced: odd_size(rng, *LONG_WIDTHS)},
        {**kernel.shape, rows: 2, reduced: of_class(rng, *SHORT_WIDTHS, 8, 0)},
    )
    shapes = (*shapes, *other_paths.shapes(kernel))
    for shape in shapes:
        checked = kernel.check([kernel.case(shape) for _ in range(2)], placement=placement)
        if isinstance(checked, Failed):
            return checked
    how = "from read-only pages" if on_host else "with the device's inputs compared afterwards"
    updated = f" but {', '.join(kernel.operation.updates)}" if kernel.operation.updates else ""
    return Passed(observed=f"{2 * len(shapes)} calls {how}", threshold=f"no write to an input{updated}")


MUTATION = Gate(name="mutation", examine=examine)
