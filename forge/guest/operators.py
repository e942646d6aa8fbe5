"""Runs beside hostile code. Counts with torch's profiler what runs while the function is called, as rows of data.

In its own guest a candidate could write this table itself. So its author sees the table, but no verdict depends on
it.
"""

import json
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile, record_function

CALL = "call"
"""Name of the row of the call itself. Its own time is what no operator took, such as a compiled extension's."""
WARM_UP_CALLS = 3
"""Number of calls before the profiler starts. Chosen: compilation and autotuning happen in the first call. Each more
costs its time."""
_ROWS = 64
"""Number of rows, at most. Chosen; what is left out has the smallest times, since rows are sorted by time."""
_NAME = 200
"""Number of characters in a row's name, at most. Chosen; mangled names of templates have thousands of characters."""
_NS_PER_US = 1000
"""Number of nanoseconds in a microsecond."""


def count(
    function: Callable[..., object], inputs: tuple[torch.Tensor, ...], scalars: list[float], calls: int
) -> bytes:
    """Return JSON rows of the operators and kernels of `calls` calls, the longest first."""
    for _ in range(WARM_UP_CALLS):
        function(*inputs, *scalars)
    on_device = any(one.is_cuda for one in inputs)
    _wait(on_device=on_device)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_device else [])]
    with profile(activities=activities) as seen:
        for _ in range(calls):
            with record_function(CALL):
                function(*inputs, *scalars)
        _wait(on_device=on_device)
    rows = [_row(event) for event in seen.key_averages()]
    rows.sort(key=lambda row: -max(float(str(row["self_ns"])), float(str(row["device_ns"]))))
    return json.dumps(rows[:_ROWS]).encode()


def _wait(*, on_device: bool) -> None:
    if on_device:
        torch.cuda.synchronize()


def _row(event: torch.autograd.profiler_util.FunctionEventAvg) -> dict[str, object]:
    return {
        "name": event.key[:_NAME],
        "calls": event.count,
        "self_ns": event.self_cpu_time_total * _NS_PER_US,
        "device_ns": event.self_device_time_total * _NS_PER_US,
    }
