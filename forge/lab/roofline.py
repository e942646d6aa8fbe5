"""The fastest time possible: the bytes that must move, faster than this machine was ever seen to move them.

The bandwidth is that of one thread copying a buffer that stays in its own cache, best of many, times the number
of threads: no honest kernel that touches those bytes is faster, however they are cached. A time below it means
that the evaluator, or the candidate, is lying.
"""

import time
from collections.abc import Callable

BUFFER_BYTES = 128 * 1024
REPEATS = 500


def cached_bandwidth_bytes_per_s(threads: int, clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Bytes read and written per second by `threads` threads that each copy within their own cache."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    source = torch.ones(BUFFER_BYTES // 4)
    target = torch.empty_like(source)
    best_ns = 1e30
    for _ in range(REPEATS):
        started_ns = clock()
        target.copy_(source)
        best_ns = min(best_ns, float(max(1, clock() - started_ns)))
    torch.set_num_threads(before)
    return threads * 2 * BUFFER_BYTES / best_ns * 1e9


def floor_ns(bytes_moved: int, bandwidth_bytes_per_s: float) -> float:
    """Nanoseconds below which no time is believed."""
    return bytes_moved / bandwidth_bytes_per_s * 1e9
