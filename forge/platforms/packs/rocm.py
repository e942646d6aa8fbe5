"""The pack of AMD Instinct GPUs: rocprof's CSV. Forge runs nothing there, so it judges nothing there."""

from forge.platforms.packs.pack import TORCH_METRICS, CounterReading, Meaning, Pack, csv_rows, of_rows, trace_times

_COLUMNS = {
    "VALUBusy": ("rocprof.valu_busy_percent", "%"),
    "MemUnitBusy": ("rocprof.memory_busy_percent", "%"),
    "MemUnitStalled": ("rocprof.memory_stalled_percent", "%"),
    "L2CacheHit": ("rocprof.l2_hit_percent", "%"),
    "LDSBankConflict": ("rocprof.lds_conflict_percent", "%"),
    "FetchSize": ("rocprof.fetched_kb", "KB"),
    "WriteSize": ("rocprof.written_kb", "KB"),
}


def rocprof_csv(text: str) -> tuple[CounterReading, ...]:
    """Read a CSV of rocprof (a column for each counter) or of rocprofv3 (a row for each counter)."""
    rows = csv_rows(text)
    if rows and {"Counter_Name", "Counter_Value"} <= set(rows[0]):
        rows = [{row["Counter_Name"]: row["Counter_Value"]} for row in rows]
    return of_rows(rows, _COLUMNS)


EXAMPLE = """
#include <hip/hip_runtime.h>

__global__ void scale(const float* x, float* y, long count, float factor) {
    long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) y[at] = x[at] * factor;
}
"""
ROCM = Pack(
    name="rocm",
    title="AMD Instinct GPUs",
    languages=("hip", "triton"),
    facts=(
        "A wavefront has 64 lanes: masks, shuffles and reductions that assume 32 are wrong here.",
        "hipcc takes CUDA-like C++ with <hip/hip_runtime.h>; Triton kernels need no change but other block sizes.",
        "The local data share has 64 KB for each compute unit; bank conflicts come with strides of 32 words.",
        "Matrix instructions are MFMA: rocWMMA or Triton's tl.dot use them.",
    ),
    example=EXAMPLE,
    example_of="one scaling of a tensor in HIP",
    metrics=(
        Meaning("rocprof.memory_busy_percent", "%", "time in which the memory unit is busy", "memory"),
        Meaning("rocprof.memory_stalled_percent", "%", "time in which the memory unit waits", "memory"),
        Meaning("rocprof.valu_busy_percent", "%", "time in which vector arithmetic runs", "compute"),
        Meaning("rocprof.lds_conflict_percent", "%", "time lost to bank conflicts", "latency"),
        Meaning("rocprof.l2_hit_percent", "%", "accesses that the second-level cache answers", None),
        *TORCH_METRICS,
    ),
    readers={"rocprof": rocprof_csv, "torch": trace_times},
)
