"""What a profiler saw of one kernel launch, and what that says holds it back."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.device import Positive
from forge.domain.digest import Value

Percent = Annotated[float, Field(ge=0, le=150)]
"""A share as counters give it: two that are read in different passes over a kernel can come out above 100."""
Count = Annotated[int, Field(ge=0)]
Bottleneck = Literal["memory", "compute", "launch", "latency", "sync"]
"""Bytes to and from memory; arithmetic; a launch too small to fill the device; waiting for data with too few warps
to hide it; waiting for other threads."""


class KernelProfile(Value):
    """One launch of one kernel, as counters saw it. None: the tool has no such counter on this device."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    duration_ns: Positive
    """Under the profiler, which serialises launches: for comparing with itself only."""
    dram_percent: Percent | None
    compute_percent: Percent | None
    """Throughput of memory and of the multiprocessors, of what the device could do for as long."""
    dram_bytes: Count | None
    l2_hit_percent: Percent | None
    achieved_occupancy_percent: Percent | None
    theoretical_occupancy_percent: Percent | None
    waves: Annotated[float, Field(ge=0)] | None
    """Grids that the device can hold at once, in this grid: below 1 some multiprocessors have nothing to do."""
    registers_per_thread: Count | None
    static_shared_bytes: Count | None
    dynamic_shared_bytes: Count | None
    local_bytes: Count | None
    """Moved to and from local memory: spilled registers, and arrays with indices unknown at compile time."""
    stalls: dict[str, Annotated[float, Field(ge=0)]]
    """Reason -> warps stalled by it for each instruction issued, the largest first."""


class Diagnosis(Value):
    """What holds a kernel back, and the counters it rests on."""

    bottleneck: Bottleneck
    rule: str
    """The rule that applied, in words."""
    evidence: dict[str, float]
    """Field of the profile -> what it read; what is held against what, the rule says."""


class OperatorTime(Value):
    """One operator or kernel in torch's profile of several calls."""

    name: Annotated[str, StringConstraints(pattern=r"^[ -~]{1,200}$")]
    """`call` is the call itself: its own time is what no operator took, such as a compiled extension's."""
    calls: Count
    self_ns: Annotated[float, Field(ge=0)]
    """On the processor, without what it called, over all calls; under the profiler, which takes time itself."""
    device_ns: Annotated[float, Field(ge=0)]
    """On the GPU, likewise."""


class CodeFacts(Value):
    """What the machine code of one kernel says, without running it."""

    name: str
    registers: Count
    stack_bytes: Count
    shared_bytes: Count
    local_bytes: Count
    widest_load_bits: Count
    """The widest load from global memory: 128 is four floats at once; 0 if there is none."""
    matrix_instructions: Count
    """HMMA, IMMA, DMMA, QMMA, and the warpgroups' HGMMA, IGMMA, QGMMA."""
    warpgroup_instructions: Count
    """Of these, the warpgroups'."""
    bulk_loads: Count
    """Copies by the tensor memory accelerator."""
    local_loads: Count
    local_stores: Count
    """LDL and STL: registers that were spilled, or indexed."""
    barriers: Count
