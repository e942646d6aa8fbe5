"""Applies one function to many items in several threads; torch releases the interpreter while it works.

Torch divides its work among threads of its own, which wait in a loop for the next piece. The calling thread alone
does small work sooner, and with a third of the processor time.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from forge.lab.job import processors

SERIAL_UP_TO = 16
"""Number of small items up to which threads gain nothing. Chosen; a larger number leaves processors idle longer."""
MOST_THREADS = 16
"""Number of threads, at most. Chosen; each thread holds an item's tensors, so a larger number takes more memory."""
DIVIDED_FROM = 2**20
"""Number of elements of a tensor from which torch may divide work on it. Chosen; work on fewer takes about a
millisecond."""
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
    with _UNDIVIDED, ThreadPoolExecutor(min(MOST_THREADS, processors())) as pool:
        return list(pool.map(work, listed))


class _Undivided:
    """Makes torch compute in the calling thread, since it would split each small item once more otherwise.

    Torch keeps a number for each thread and one for future threads. Several threads may be inside at once. Each one
    that leaves sets both numbers to their value before the first one entered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1

    def __enter__(self) -> None:
        import torch

        with self._lock:
            if not self._inside:
                self._before = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        import torch

        with self._lock:
            self._inside -= 1
            torch.set_num_threads(self._before)


_UNDIVIDED = _Undivided()


def undivided_if_small(elements: int) -> AbstractContextManager[None]:
    """Return a context in which torch computes in the calling thread, if the largest tensor has so few elements."""
    return _UNDIVIDED if elements < DIVIDED_FROM else nullcontext()
