"""Applies one function to many items in several threads; torch releases the interpreter while it works."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from forge.lab.inputs.undivided import UNDIVIDED
from forge.lab.job import processors

SERIAL_UP_TO = 16
"""Number of small items up to which threads gain nothing. Chosen; a larger number leaves processors idle longer."""
MOST_THREADS = 16
"""Number of threads, at most. Chosen; each thread holds an item's tensors, so a larger number takes more memory."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(
    work: Callable[[Item], Result], items: Iterable[Item], *, serial_up_to: int = SERIAL_UP_TO
) -> list[Result]:
    """Return the results of `work` in order; up to `serial_up_to` items are handled without threads.

    The first exception ends it.
    """
    listed = list(items)
    if len(listed) <= serial_up_to:
        return [work(one) for one in listed]
    with UNDIVIDED, ThreadPoolExecutor(min(MOST_THREADS, processors())) as pool:
        return list(pool.map(work, listed))
