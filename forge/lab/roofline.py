"""The fastest time possible: the bytes that must move, at the fastest this machine was seen to move them.

The bandwidth is that of a plain copy of the same size, hot in whatever cache holds it, best of many: no honest
kernel that touches those bytes is faster. Below it the evaluator, or the candidate, is lying.
"""

import time
from collections.abc import Callable

REPEATS = 40


def copy_bandwidth_bytes_per_s(
    size_bytes: int, *, threads: int, clock: Callable[[], int] = time.perf_counter_ns
) -> float:
    """Bytes read and written per second by the best of many copies of `size_bytes / 2`."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    source = torch.randn(max(1, size_bytes // 8))
    target = torch.empty_like(source)
    best_ns = 1e30
    for _ in range(REPEATS):
        started_ns = clock()
        target.copy_(source)
        best_ns = min(best_ns, float(max(1, clock() - started_ns)))
    torch.set_num_threads(before)
    moved_bytes: int = 2 * source.numel() * source.element_size()
    return moved_bytes / best_ns * 1e9


def floor_ns(bytes_moved: int, bandwidth_bytes_per_s: float) -> float:
    """Nanoseconds below which no time is believed."""
    return bytes_moved / bandwidth_bytes_per_s * 1e9
