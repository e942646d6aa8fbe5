"""Computes the fastest time possible: the necessary work at the best rates that were ever measured on this machine.

A time below it means that the evaluator or the candidate is wrong. So every rate is the best one that was measured by
any method (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009, with measured ceilings).

For a CPU the bandwidth is the number of threads times a rate. The rate is the best one at which a thread copied a
buffer within its own cache. No honest kernel that touches these bytes is faster, however they are cached.
"""

import time

from forge.domain.device import Ceilings

BUFFER_BYTES = 128 * 1024
"""Size of the copied buffer in bytes. Chosen; with its copy it fits into a core's second-level cache."""
REPEATS = 500
"""Number of copies, of which the fastest counts. All together took 22 ms on a busy machine. Chosen; more copies find
the fastest one more surely, and each costs 0.04 ms."""
MAY_RUN_AS: dict[str, tuple[str, ...]] = {
    "fp32": ("fp32", "tf32"),
    "fp16": ("fp16", "bf16"),
    "bf16": ("fp16", "bf16"),
}
"""Element types at whose rates a product may run, by element type. Three products of tf32 are as exact as one of
fp32. Fp16 and bf16 share their units, and differ in power with the data."""


def cached_bandwidth_bytes_per_s(threads: int) -> float:
    """Return the bytes read and written per second by `threads` threads that each copy within their own cache."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    source = torch.ones(BUFFER_BYTES // 4)
    target = torch.empty_like(source)
    best_ns = 1e30
    for _ in range(REPEATS):
        started_ns = time.perf_counter_ns()
        target.copy_(source)
        best_ns = min(best_ns, float(max(1, time.perf_counter_ns() - started_ns)))
    torch.set_num_threads(before)
    return threads * 2 * BUFFER_BYTES / best_ns * 1e9


def cpu_ceilings(threads: int) -> Ceilings:
    """Measure the ceilings of this machine's processor."""
    return Ceilings(
        copy_bytes_per_s=cached_bandwidth_bytes_per_s(threads),
        read_bytes_per_s=None,
        write_bytes_per_s=None,
        cached_bytes_per_s=None,
        flop_per_s={},
        launch_ns=None,
        cache_bytes=None,
        multiprocessors=None,
    )


def floor_ns(
    bytes_moved: int,
    ceilings: Ceilings,
    *,
    written_bytes: int = 0,
    flops: float = 0.0,
    dtype: str | None = None,
    set_bytes: int | None = None,
) -> float:
    """Return the nanoseconds below which no time is believed: the slowest of moving, computing and launching.

    `bytes_moved` are read or written once each; `written_bytes` of them are written. Reads and writes have their own
    rates and share one bus. `flops` are those of matrix products with operands of `dtype`.

    `set_bytes` is the size of all input and output sets together, if they take turns. In each turn the cache can hold
    up to `cache_bytes` of them, under any replacement rule; these bytes move at the cache's rate. With None, nothing
    is in a cache.
    """
    memory_ns = _memory_ns(bytes_moved - written_bytes, written_bytes, ceilings)
    fastest = max(ceilings.memory_bytes_per_s, ceilings.cached_bytes_per_s or 0.0)
    moving_ns = max(memory_ns * (1 - _cached_share(ceilings, set_bytes)), bytes_moved / fastest * 1e9)
    return max(moving_ns, _computing_ns(flops, dtype, ceilings), ceilings.launch_ns or 0.0)


def write_back_ns(written_bytes: int, ceilings: Ceilings) -> float:
    """Return the nanoseconds in which a last-level cache writes out what it may still hold of these bytes."""
    return _memory_ns(0, min(written_bytes, ceilings.cache_bytes or 0), ceilings)


def _memory_ns(read_bytes: int, written_bytes: int, ceilings: Ceilings) -> float:
    reading = max(ceilings.read_bytes_per_s or 0.0, ceilings.copy_bytes_per_s)
    writing = max(ceilings.write_bytes_per_s or 0.0, ceilings.copy_bytes_per_s)
    return (read_bytes / reading + written_bytes / writing) * 1e9


def _cached_share(ceilings: Ceilings, set_bytes: int | None) -> float:
    """Return the largest share of the bytes that a cache can serve if sets of `set_bytes` in all take turns."""
    if set_bytes is None or not ceilings.cache_bytes or not ceilings.cached_bytes_per_s:
        return 0.0
    return min(1.0, ceilings.cache_bytes / max(1, set_bytes))


def _computing_ns(flops: float, dtype: str | None, ceilings: Ceilings) -> float:
    """Return the nanoseconds of the flops; an element type without a measured rate gets the fastest measured one."""
    rates = [
        ceilings.flop_per_s[name] for name in MAY_RUN_AS.get(dtype or "", (dtype,)) if name in ceilings.flop_per_s
    ]
    peak = max(rates or ceilings.flop_per_s.values(), default=0.0)
    return flops / peak * 1e9 if peak else 0.0
