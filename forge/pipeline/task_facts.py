"""Facts about a task before a kernel is written, such as its expected bottleneck and earlier experiments."""

from typing import Literal

from forge.domain.task import Task
from forge.domain.tensors import DType
from forge.events.plan import BestKernel, EarlierExperiment, Triage
from forge.operations import find_operation
from forge.platforms import PROCESSORS, Processor

Bottleneck = Literal["launch", "memory", "compute"]
"""Bottleneck that a ratio of bytes to flops can show. Others, such as sync, show only in a profile."""

LAUNCH_BOUND_BYTES = 2**21
"""Traffic in bytes below which starting a kernel takes longer than moving its bytes. It is used only for a processor
without a published bandwidth."""
LAUNCH_US = 0.7
"""Typical time to start one kernel in a CUDA graph on an H200, in microseconds. No kernel is judged by it."""
HOST_RIDGE = 100.0
"""Flops per byte above which a host's processor counts as bound by arithmetic. It is a guess, not from a data
sheet."""
_MATRIX_INTENSITY = 32.0
"""Flops per byte above which an operation counts as a matrix product, which runs on the matrix units. Chosen;
operations on rows have fewer than 10."""


def triage(task: Task, earlier: tuple[EarlierExperiment, ...], best: BestKernel | None = None) -> Triage:
    """Return the implementation class, the roofline from vendor figures, and the results of earlier runs."""
    operation = find_operation(task.op)
    processor = PROCESSORS[task.target.gpu]
    moved, flops = least_traffic(task), operation.flops(task.shape)
    intensity = flops / max(moved, 1)
    bandwidth, unit = processor.peak_bandwidth_gb_s, _unit(processor, task, intensity)
    rate = processor.peak_tflop_s.get(unit)
    return Triage(
        implementation=task.language,
        bytes_moved=moved,
        flops=flops,
        intensity=round(intensity, 3),
        ridge=round(rate * 1e3 / bandwidth, 2) if rate and bandwidth else None,
        floor_us=round(moved / bandwidth / 1e3, 3) if bandwidth else None,
        earlier=earlier,
        arithmetic_us=round(flops / rate / 1e6, 3) if rate else None,
        rate_of=unit if rate else None,
        best=best,
    )


def least_traffic(task: Task) -> int:
    """Return the bytes that a call moves at least.

    How much of its operands a reference file reads isn't known, so for an own operation every operand counts once.
    """
    operation = find_operation(task.op)
    if operation.own is not None:
        return operation.operand_bytes(task.shape, task.dtype)
    return operation.bytes_moved(task.shape, task.dtype)


def bottleneck(found: Triage) -> Bottleneck:
    """Return the expected bottleneck: the kernel's start, its bytes, or its arithmetic."""
    starts = found.bytes_moved < LAUNCH_BOUND_BYTES if found.floor_us is None else found.floor_us < LAUNCH_US
    ridge = HOST_RIDGE if found.ridge is None else found.ridge
    if found.intensity > ridge:
        return "compute"
    return "launch" if starts else "memory"


def _unit(processor: Processor, task: Task, intensity: float) -> DType:
    """Return the type whose peak rate counts: the task's on the matrix units, else fp32 on the vector units."""
    return task.dtype if intensity > _MATRIX_INTENSITY and task.dtype in processor.peak_tflop_s else "fp32"
