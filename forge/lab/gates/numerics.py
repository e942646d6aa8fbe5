"""Is every element within the bound on fresh values at the public shape, and are all errors together within theirs?

If a given random number decides the answer, many answers are counted against the distribution instead.
"""

from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.distribution import examine_distribution, is_drawn
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import narrowed, odd_width
from forge.lab.judge import Aggregate, Sample, aggregate
from forge.lab.observed import Observed
from forge.operations.operation import Expectation

KINDS: tuple[InputKind, ...] = ("normal", "uniform")
"""Kinds of values that the gate asks."""
DRAWS = 3
"""Number of draws of each kind of values. An error in one draw of two is missed with a chance of 1/8; each further
draw costs a call."""
MOST_ROWS, FEWEST_ROWS = 64, 16
"""Number of rows whose errors are taken together, at most and at least."""
MOST_ELEMENTS = 2**18
"""Number of elements in all outputs of the call whose errors are taken together, at most. Chosen; the oracle computes
all of them in fp64."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge several draws of normal and of uniform inputs one by one; then judge the errors of many rows together."""
    cases = kernel.cases(kernel.shape, kernel.definition.kinds(KINDS) * DRAWS)
    errors: list[WorkloadErrors] = []
    for case in cases:
        checked = kernel.check([case])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    together = examine_distribution(kernel) if is_drawn(kernel) else _errors_together(kernel)
    if isinstance(together, Failed):
        return together
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(cases)} draws; {together}{_oracle(kernel)}",
        threshold="1 x the bound, every element; 1 x the allowance for root mean square and bias",
        errors=tuple(errors),
    )


def _oracle(kernel: LoadedKernel) -> str:
    """Return in words what computed the expected answers, if it is a file of the user."""
    return f"; oracle: {kernel.operation.oracle_is()}" if kernel.operation.oracle_is is not None else ""


def _errors_together(kernel: LoadedKernel) -> str | Failed:
    """Return in words what errors of many rows add up to, at the public width and at an odd one; or a refusal."""
    used: list[float] = []
    odd = {**_many_rows(kernel), kernel.operation.reduced_axis: odd_width(kernel.rng)}
    for shape in kernel.shapes(_many_rows(kernel), narrowed(kernel.operation, odd)):
        found = _errors_at(kernel, shape)
        if isinstance(found, Failed):
            return found
        used += found
    return f"all together {max(used):.3g} x the allowance" if used else "no errors to take together"


def _errors_at(kernel: LoadedKernel, shape: Mapping[str, int]) -> list[float] | Failed:
    """Return the share of the allowance that each output's errors have together, or the refusal."""
    observed = []
    for kind in kernel.definition.kinds(KINDS):
        called = kernel.call([kernel.case(shape, kind)])
        if isinstance(called, Failed):
            return called
        wrong = kernel.judge(called[0])[1]
        if wrong is not None:
            return wrong
        observed.append(called[0])
    types = {spec.name: spec.rounded_to(kernel.dtype) for spec in kernel.operation.outputs}
    found = {name: aggregate(samples, dtype=types[name]) for name, samples in _samples(kernel, observed).items()}
    for name, one in found.items():
        if one is not None and not one.within:
            return _refusal(name, one)
    return [one.used for one in found.values() if one is not None]


def _many_rows(kernel: LoadedKernel) -> Mapping[str, int]:
    one_row = {**kernel.shape, kernel.operation.row_axis: 1}
    elements = sum(_product(spec.sizes(one_row)) for spec in kernel.operation.outputs)
    rows = min(MOST_ROWS, max(FEWEST_ROWS, MOST_ELEMENTS // max(1, elements)))
    return narrowed(kernel.operation, {**one_row, kernel.operation.row_axis: rows})


def _product(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _samples(kernel: LoadedKernel, observed: list[Observed]) -> dict[str, list[Sample]]:
    """Return the samples by output.

    Outputs without rows, and those that aren't rounded, have no errors to take together.
    """
    samples: dict[str, list[Sample]] = {}
    for one in observed:
        expectations, baselines = kernel.expected(one.case)
        for spec, got, expected, baseline in zip(
            kernel.operation.outputs, one.outputs, expectations, baselines, strict=True
        ):
            has_rows = kernel.operation.row_axis in spec.axes
            if isinstance(expected, Expectation) and expected.derived and has_rows:
                rows = spec.axes.index(kernel.operation.row_axis)
                samples.setdefault(spec.name, []).append(Sample(got, expected, baseline, rows))
    return samples


def _refusal(name: str, found: Aggregate) -> Failed:
    message = (
        f"{name}'s errors are small one by one, but not together: root mean square {found.rms:.3g} of its size "
        f"(allowed {found.rms_allowed:.3g}), mean to one side {found.bias:.3g} (allowed {found.bias_allowed:.3g})"
    )
    return Failed(
        reason=Reason(code="INCORRECT_NUMERICAL", message=message),
        observed=f"{found.used:.3g} x the allowance",
        threshold="1 x the allowance for root mean square and bias",
    )


NUMERICS = Gate(name="numerics", examine=examine, one_call_shows_it=True, runs_early=True, runs_alone=True)
