"""Does it leave its inputs alone even while nobody looks: no scratch use that is put back before it returns?

On a CPU the inputs' pages are read-only for these calls, so that the first write ends the process. A device works on
copies: there they come back after the call and are compared, which sees what remains and not what was put back.
Inputs that the operation updates are outputs, and judged as such: wherever nothing was to be written, bit by bit.
"""

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import Placement
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd, of_class

LONG, SHORT = (513, 1535), (8, 64)
"""Between these, by lot, are two widths beside the public one: an odd one, and one that vectors of eight divide."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at the public shape and at two small ones."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    on_host = kernel.device == "cpu"
    placement = Placement(pages="read_only") if on_host else Placement(return_inputs=True)
    rng = kernel.rng
    shapes = (
        kernel.shape,
        {**kernel.shape, rows: 3, reduced: odd(rng, *LONG)},
        {**kernel.shape, rows: 2, reduced: of_class(rng, *SHORT, 8, 0)},
    )
    for shape in shapes:
        checked = kernel.check([kernel.case(shape) for _ in range(2)], placement=placement)
        if isinstance(checked, Failed):
            return checked
    how = "from read-only pages" if on_host else "with the device's inputs compared afterwards"
    updated = f" but {', '.join(kernel.operation.updates)}" if kernel.operation.updates else ""
    return Passed(observed=f"{2 * len(shapes)} calls {how}", threshold=f"no write to an input{updated}")


MUTATION = Gate(name="mutation", examine=examine)
