"""The pack of the host's processor: perf stat and torch.profiler."""

import re

from forge.platforms.packs.pack import TORCH_METRICS, CounterReading, Meaning, Pack, number, trace_times

_EVENTS = {
    "cycles": "perf.cycles",
    "instructions": "perf.instructions",
    "cache-misses": "perf.cache_misses",
    "cache-references": "perf.cache_references",
    "LLC-load-misses": "perf.llc_load_misses",
    "branch-misses": "perf.branch_misses",
    "task-clock": "perf.task_ms",
}
_LINE = re.compile(r"^\s*(?P<value>[\d.,]+)\s+(?:msec\s+)?(?P<event>[A-Za-z-]+)(?::[a-z]+)?\b")


def perf_stat(text: str) -> tuple[CounterReading, ...]:
    """Read what `perf stat` prints: a line for each event, its count first."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        seen = _LINE.match(line)
        value = number(seen["value"]) if seen else None
        if seen is not None and value is not None and seen["event"] in _EVENTS:
            found[_EVENTS[seen["event"]]] = value
    if found.get("perf.cycles") and "perf.instructions" in found:
        found["perf.ipc"] = found["perf.instructions"] / found["perf.cycles"]
    if found.get("perf.cache_references") and "perf.cache_misses" in found:
        found["perf.cache_miss_share"] = found["perf.cache_misses"] / found["perf.cache_references"]
    units = {"perf.task_ms": "ms", "perf.ipc": "1", "perf.cache_miss_share": "1"}
    return tuple(CounterReading(name, value, units.get(name, "count")) for name, value in found.items())


EXAMPLE = r"""
import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r'''
#include <cstdint>
extern "C" void scale(const float* x, float* y, int64_t count, float factor) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] * factor;
}
'''
_scale = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).scale
_scale.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float]
_scale.restype = None


def kernel(x, factor):
    y = torch.empty_like(x)
    _scale(x.data_ptr(), y.data_ptr(), x.numel(), factor)
    return y
"""
CPU = Pack(
    name="cpu",
    title="the host's processor",
    languages=("cpp", "torch"),
    facts=(
        "C++ in the constant CPP_SOURCE is compiled by g++ into libkernel.so beside kernel.py; ctypes loads it.",
        "Use OpenMP for rows and `omp simd` within them; -march=native and -fopenmp are on by default.",
        "A row that fits into the first-level cache can be passed over twice for the price of one reading.",
        "Starting threads costs microseconds: use them above some ten thousand elements only.",
    ),
    example=EXAMPLE,
    example_of="one scaling of a tensor in C++",
    metrics=(
        Meaning("perf.ipc", "1", "instructions for each cycle; under 1 it waits", None),
        Meaning("perf.cache_miss_share", "1", "share of cache accesses that go on to memory", "memory"),
        Meaning("perf.llc_load_misses", "count", "loads that memory must answer", "memory"),
        Meaning("perf.branch_misses", "count", "mispredicted branches", "latency"),
        *TORCH_METRICS,
    ),
    readers={"perf": perf_stat, "torch": trace_times},
)
