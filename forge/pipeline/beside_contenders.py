"""Measures beside the contenders of a screening, and again without one that fails while it is timed."""

from collections.abc import Callable
from typing import TypeVar

from forge.domain.contender_name import is_contender
from forge.lab.job import Progress
from forge.lab.timing.contender_failure import ContenderFailedError
from forge.lab.timing.screening import ContenderScreening
from forge.pipeline.samples import Taken

Found = TypeVar("Found")
"""Type of the result of a measurement beside contenders."""


def beside_contenders(
    screening: ContenderScreening,
    earlier: Taken | None,
    take: Callable[[ContenderScreening, Taken | None], Found],
    *,
    progress: Progress,
) -> Found:
    """Measure beside the screening's contenders; one that fails is left out, and all is measured again without it.

    Earlier samples are added to beside the contenders that they were taken beside. If one of those isn't right any
    more, they don't count.
    """
    while True:
        as_before = screening.beside(taken_beside(earlier)) if earlier is not None else None
        try:
            return take(as_before or screening, earlier if as_before else None)
        except ContenderFailedError as wrong:
            progress(f"a contender is left out, for it failed while it was timed: {wrong}")
            screening = screening.without(wrong.name, wrong.failed)


def taken_beside(earlier: Taken) -> frozenset[str]:
    """Return the contenders among the sides of earlier samples."""
    return frozenset(filter(is_contender, earlier.samples.sides))
