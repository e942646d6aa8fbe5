"""The pack of Apple GPUs: Xcode's counters as CSV. Forge runs nothing there, so it judges nothing there."""

from forge.platforms.packs.pack import CounterReading, Meaning, Pack, csv_rows, of_rows

_COLUMNS = {
    "ALU Limiter": ("xcode.alu_limiter_percent", "%"),
    "ALU Utilization": ("xcode.alu_percent", "%"),
    "Buffer Read Limiter": ("xcode.read_limiter_percent", "%"),
    "Buffer Write Limiter": ("xcode.write_limiter_percent", "%"),
    "Last Level Cache Miss Rate": ("xcode.llc_miss_percent", "%"),
    "Kernel Occupancy": ("xcode.occupancy_percent", "%"),
    "GPU Time": ("xcode.gpu_us", "us"),
}


def xcode_csv(text: str) -> tuple[CounterReading, ...]:
    """Read the counters that Xcode's GPU debugger exports: a row for each encoder, a column for each counter."""
    rows = [{name.split(" (")[0]: cell for name, cell in row.items()} for row in csv_rows(text)]
    return of_rows(rows, _COLUMNS)


EXAMPLE = """
#include <metal_stdlib>
using namespace metal;

kernel void scale(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  constant float& factor [[buffer(2)]], uint at [[thread_position_in_grid]]) {
    y[at] = x[at] * factor;
}
"""
METAL = Pack(
    name="metal",
    title="Apple GPUs",
    languages=("metal",),
    facts=(
        "A SIMD group has 32 lanes; simd_sum and simd_shuffle work within it.",
        "Memory is shared with the processor: a buffer needs no copy, and bandwidth is shared too.",
        "Threadgroup memory has 32 KB; a group has at most 1,024 threads.",
        "There is no fp64, and bf16 needs Metal 3.1.",
    ),
    example=EXAMPLE,
    example_of="one scaling of a tensor in Metal",
    metrics=(
        Meaning("xcode.read_limiter_percent", "%", "time limited by reads of buffers", "memory"),
        Meaning("xcode.write_limiter_percent", "%", "time limited by writes of buffers", "memory"),
        Meaning("xcode.alu_limiter_percent", "%", "time limited by arithmetic", "compute"),
        Meaning("xcode.llc_miss_percent", "%", "accesses that go on to memory", "memory"),
        Meaning("xcode.occupancy_percent", "%", "threads that are there to hide waiting", None),
        Meaning("xcode.gpu_us", "us", "time on the GPU", None),
    ),
    readers={"xcode": xcode_csv},
)
