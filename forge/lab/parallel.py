"""The same for each of many things, on a few threads: torch lets go of the interpreter while it works."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from forge.lab.job import processors

FEW = 16
"""So many small things aren't worth a thread."""
MOST_THREADS = 16
Given = TypeVar("Given")
Made = TypeVar("Made")


def each(work: Callable[[Given], Made], things: Iterable[Given], *, few: int = FEW) -> list[Made]:
    """What `work` makes of each, in order, one after the other up to `few`; the first exception ends it."""
    listed = list(things)
    if len(listed) <= few:
        return [work(one) for one in listed]
    with _UNDIVIDED, ThreadPoolExecutor(min(MOST_THREADS, processors())) as pool:
        return list(pool.map(work, listed))


class _Undivided:
    """Torch computes on the thread that asks: each small thing would be split once more otherwise.

    Torch keeps a number for each thread and one for threads to come. Several may be inside at once, so whoever leaves
    sets both to what they were before the first came in.
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
