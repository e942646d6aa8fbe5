"""Right answers of one kernel, and how far two of them are apart, in units of what rounding explains."""

from forge.domain.operation import Expectation
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.judge import spread
from forge.lab.observed import Case, Observed


def asked(kernel: LoadedKernel, case: Case) -> Observed | Failed:
    """One right answer, or what is wrong with it."""
    observed = kernel.call([case])
    if isinstance(observed, Failed):
        return observed
    return kernel.judge(observed[0])[1] or observed[0]


def apart(kernel: LoadedKernel, one: Observed, other: Observed) -> float:
    """The largest difference between two answers to the same question; 0 where they are equal bit for bit.

    Outputs that aren't rounded are held to the oracle exactly, in each answer, and add nothing here.
    """
    if equal(one, other):
        return 0.0
    expectations = kernel.operation.oracle(*one.case.inputs, *one.case.scalars)
    return max(
        spread(now, then, expected, dtype=spec.rounded_to(kernel.dtype), policy=kernel.policy)
        if isinstance(expected, Expectation)
        else 0.0
        for spec, now, then, expected in zip(
            kernel.operation.outputs, one.outputs, other.outputs, expectations, strict=True
        )
    )


def equal(one: Observed, other: Observed) -> bool:
    """Whether two answers have the same values."""
    return all(bool((now == then).all()) for now, then in zip(one.outputs, other.outputs, strict=True))
