"""Runs beside hostile code. What torch's own profiler counts while the function is called, as rows of data.

In a candidate's guest the candidate could write this table itself: its author sees it, and nothing rests on it.
"""

import json
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile, record_function

CALL = "call"
"""The row of the call itself: its own time is what no operator took, such as a compiled extension's."""
WARM_UP_CALLS = 3
_ROWS = 64
_NAME = 200
_NS_PER_US = 1000


def count(
    function: Callable[..., object], inputs: tuple[torch.Tensor, ...], scalars: list[float], calls: int
) -> bytes:
    """JSON rows of the operators and kernels of `calls` calls, the longest first."""
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
