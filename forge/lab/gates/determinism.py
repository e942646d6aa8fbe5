"""Is the answer to the same question the same in every run?

A different order of summation may change the last bits. So a spread within the bound is recorded, not refused.
"""

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.difference import equal, largest_difference
from forge.lab.gates.gate import Gate
from forge.lab.observed import Observed

RUNS = 10
"""Number of times the same question is asked. An error in one run of four is missed with a chance of 0.75^10, 6 %."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask the same question ten times; every answer must be within the bound."""
    case = kernel.case(kernel.shape)
    answers: list[Observed] = []
    for _ in range(RUNS):
        observed = kernel.call([case])
        if isinstance(observed, Failed):
            return observed
        _, wrong = kernel.judge(observed[0])
        if wrong is not None:
            return wrong
        answers.append(observed[0])
    first, *later = answers
    same = 1 + sum(equal(answer, first) for answer in later)
    furthest = max(largest_difference(kernel, answer, first) for answer in later)
    return Passed(
        observed=f"{same} of {RUNS} runs bitwise equal to the first, spread {furthest:.3g} x what rounding explains",
        threshold="every run within the bound",
    )


DETERMINISM = Gate(name="determinism", examine=examine, runs_early=True, runs_alone=True)
