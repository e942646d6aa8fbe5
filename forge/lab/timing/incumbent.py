"""Times the incumbent beside a candidate, as long as it answers rightly."""

from collections.abc import Callable
from typing import TypeVar

from forge.domain.policy import BaselineKind
from forge.lab.finding import Failed
from forge.lab.job import Progress

PROMOTED: BaselineKind = "promoted"
"""Name of the incumbent's side."""
Kernel = TypeVar("Kernel")
Samples = TypeVar("Samples")


class IncumbentFailedError(Exception):
    """The incumbent failed or answered wrongly while it was timed, so it can't be a baseline."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.reason.message)
        self.failed = failed


def beside_incumbent(
    measure: Callable[[Kernel | None], Samples], incumbent: Kernel | None, progress: Progress
) -> Samples:
    """Measure beside the incumbent; if it answers wrongly, leave it out and measure again."""
    try:
        return measure(incumbent)
    except IncumbentFailedError as wrong:
        progress(f"the promoted kernel is left out, for it failed while it was timed: {wrong}")
        return measure(None)
