"""Before anything is written: what kind of implementation, where the floor lies, what was tried before."""

from typing import Literal

from forge.domain.task import Task
from forge.domain.tensors import DType
from forge.events.plan import BestKernel, EarlierExperiment, Triage
from forge.operations import find_operation
from forge.platforms import PROCESSORS, Processor

Bottleneck = Literal["launch", "memory", "compute"]
"""The fourth class, sync, shows in no ratio of bytes to flops: only a profile finds it."""

LAUNCH_BOUND_BYTES = 2**21
"""Below this much traffic a processor spends more time starting a kernel than moving its bytes, where no bandwidth is
tabulated."""
LAUNCH_US = 0.7
"""About what a kernel's start costs within a CUDA graph on an H200: for a prior, nothing is judged by it."""
HOST_RIDGE = 100.0
"""Flops per byte above which a host is taken for bound by arithmetic; no data sheet is used for it."""
_MATRIX_INTENSITY = 32.0
"""Flops per byte above which an operation can only be a product of matrices: those run on the matrix units."""


def triage(task: Task, earlier: tuple[EarlierExperiment, ...], best: BestKernel | None = None) -> Triage:
    """The implementation class, the roofline by the processor's table, and what is known from before."""
    operation = find_operation(task.op)
    processor = PROCESSORS[task.target.gpu]
    moved, flops = operation.bytes_moved(task.shape, task.dtype), operation.flops(task.shape)
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


def bottleneck(found: Triage) -> Bottleneck:
    """Where the floor lies: starting the kernel, moving its bytes, or its arithmetic."""
    starts = found.bytes_moved < LAUNCH_BOUND_BYTES if found.floor_us is None else found.floor_us < LAUNCH_US
    ridge = HOST_RIDGE if found.ridge is None else found.ridge
    if found.intensity > ridge:
        return "compute"
    return "launch" if starts else "memory"


def _unit(processor: Processor, task: Task, intensity: float) -> DType:
    """Whose peak rate counts: the matrix units' where the operation can use them, else the vector units'."""
    return task.dtype if intensity > _MATRIX_INTENSITY and task.dtype in processor.peak_tflop_s else "fp32"
