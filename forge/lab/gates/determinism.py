"""Is the answer to the same question the same, run after run?

Another order of summation may change the last bits, so a spread within the bound is recorded, not refused.
"""

from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe

RUNS = 10


def examine(probe: Probe) -> Finding:
    """Ask the same question ten times; every answer must be within the bound."""
    case = probe.case(probe.shape)
    answers = []
    for _ in range(RUNS):
        observed = probe.call([case])
        if isinstance(observed, Failed):
            return observed
        _, wrong = probe.judge(observed[0])
        if wrong is not None:
            return wrong
        answers.append(observed[0].outputs)
    equal = sum(
        all(bool((now == then).all()) for now, then in zip(answer, answers[0], strict=True)) for answer in answers
    )
    return Passed(
        observed=f"{equal} of {RUNS} runs bitwise equal to the first", threshold="every run within the bound"
    )


DETERMINISM = Gate(name="determinism", examine=examine)
