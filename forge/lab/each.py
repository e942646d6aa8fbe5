"""The same for each of many things, on a few threads: torch lets go of the interpreter while it works."""

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
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # each small thing would be split once more otherwise
    try:
        with ThreadPoolExecutor(min(MOST_THREADS, processors())) as pool:
            return list(pool.map(work, listed))
    finally:
        torch.set_num_threads(before)
