"""A profiler's figures for one kernel launch, and the bottleneck that they show."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.device import Positive
from forge.domain.digest import Value

Percent = Annotated[float, Field(ge=0, le=150)]
"""Percentage from counters. It can exceed 100, because counters may be read in different runs of the kernel."""
Count = Annotated[int, Field(ge=0)]
Bottleneck = Literal["memory", "compute", "launch", "latency", "sync"]
"""Resource or wait that limits a kernel.

- `memory`: bytes to and from memory.
- `compute`: arithmetic.
- `launch`: a launch too small to fill the device.
- `latency`: waiting for data, with too few warps to hide it.
- `sync`: waiting for other threads.
"""


class KernelProfile(Value):
    """The counters of one kernel launch. None: the tool has no such counter on this device."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    duration_ns: Positive
    """Duration under the profiler, which serialises launches. Compare it only with other profiled durations."""
    dram_percent: Percent | None
    compute_percent: Percent | None
    """Throughput of the multiprocessors, as a share of their peak. `dram_percent` is the same for memory."""
    dram_bytes: Count | None
    l2_hit_percent: Percent | None
    achieved_occupancy_percent: Percent | None
    theoretical_occupancy_percent: Percent | None
    waves: Annotated[float, Field(ge=0)] | None
    """Blocks of the grid divided by the blocks that the device holds at once. Below 1, some multiprocessors are
    idle."""
    registers_per_thread: Count | None
    static_shared_bytes: Count | None
    dynamic_shared_bytes: Count | None
    local_bytes: Count | None
    """Bytes moved to and from local memory: spilled registers, and arrays whose indices aren't known at compile
    time."""
    stalls: dict[str, Annotated[float, Field(ge=0)]]
    """Reason -> average number of warps stalled by it for each issued instruction, largest first."""


class Diagnosis(Value):
    """A kernel's bottleneck, and the counters that show it."""

    bottleneck: Bottleneck
    rule: str
    """Rule that applied, in words."""
    evidence: dict[str, float]
    """Field of the profile -> its value, for the fields that the rule compares."""


class OperatorTime(Value):
    """One operator or kernel in torch's profile, summed over several calls."""

    name: Annotated[str, StringConstraints(pattern=r"^[ -~]{1,200}$")]
    """Name of the operator. `call` is the candidate's call: its own time is spent outside operators, as in
    extensions."""
    calls: Count
    self_ns: Annotated[float, Field(ge=0)]
    """Processor time of all calls, without the operators that it called. It includes the profiler's own cost."""
    device_ns: Annotated[float, Field(ge=0)]
    """GPU time of all calls, without the operators that it called."""


class CodeFacts(Value):
    """Facts read from the machine code of one kernel, without running it."""

    name: str
    registers: Count
    stack_bytes: Count
    shared_bytes: Count
    local_bytes: Count
    widest_load_bits: Count
    """Width of the widest load from global memory: 128 is four floats at once; 0: no load."""
    matrix_instructions: Count
    """Number of matrix instructions: HMMA, IMMA, DMMA, QMMA, and the warpgroups' HGMMA, IGMMA, QGMMA."""
    warpgroup_instructions: Count
    """Number of the tensor-core instructions that are warpgroup instructions."""
    bulk_loads: Count
    """Number of copies by the tensor memory accelerator."""
    local_loads: Count
    """Number of LDL instructions: loads of spilled registers or of indexed arrays."""
    local_stores: Count
    """Number of STL instructions: stores of spilled registers or to indexed arrays."""
    barriers: Count
