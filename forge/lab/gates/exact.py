"""Is it exact where arithmetic is exact: on small integers, whose sums have no rounding errors in any order?

Weights are powers of two. Operations that follow a sum may still round. Outputs that are sums themselves must be
equal to the last bit.
"""

from functools import partial

from forge.domain.evidence import WorkloadErrors
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import configurations
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd_size

DRAWS = 3
"""Number of draws at the public shape. An error in one draw of two is missed with a chance of 1/8; each further draw
costs a call."""
ROWS, WIDTHS = (5, 9), (513, 1535)
"""Ranges from which the number of rows and the odd width of one more draw are drawn at random."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge integer inputs at the public shape and at one shape of odd width, then with each configuration."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    errors: list[WorkloadErrors] = []
    other = {**kernel.shape, rows: kernel.rng.randint(*ROWS), reduced: odd_size(kernel.rng, *WIDTHS)}
    for shape in (*(kernel.shape,) * DRAWS, other):
        checked = kernel.check_alone(kernel.case(shape, "integers"))
        if isinstance(checked, Failed):
            return checked
        errors += checked
    tuned = configurations.ask_each(kernel, [partial(kernel.case, kernel.shape, "integers")])
    if isinstance(tuned, Failed):
        return tuned
    errors += tuned
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(errors)} draws of integers",
        threshold="sums exact, the rest within the bound of what follows them",
        errors=tuple(errors),
    )


EXACT = Gate(
    name="exact",
    examine=examine,
    needs=frozenset({"integers"}),
    one_call_shows_it=True,
    runs_early=True,
    runs_alone=True,
)
