"""The pack of NVIDIA GPUs: Nsight Compute's CSV and torch.profiler."""

import csv
import io

from forge.platforms.packs.pack import TORCH_METRICS, CounterReading, Meaning, Pack, of_rows, trace_times

_COLUMNS = {
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("ncu.dram_percent", "%"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("ncu.dram_percent", "%"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("ncu.compute_percent", "%"),
    "lts__t_sector_hit_rate.pct": ("ncu.l2_hit_percent", "%"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("ncu.occupancy_percent", "%"),
    "launch__waves_per_multiprocessor": ("ncu.waves", "1"),
    "launch__registers_per_thread": ("ncu.registers", "count"),
}


def ncu_csv(text: str) -> tuple[CounterReading, ...]:
    """Read `ncu --page raw --csv`: a row of names, a row of units, a row for each launch."""
    lines = [line for line in text.splitlines() if not line.startswith("==")]
    rows = list(csv.reader(io.StringIO("\n".join(lines))))
    names = rows[0]
    return of_rows([dict(zip(names, row, strict=False)) for row in rows[2:]], _COLUMNS)


EXAMPLE = """
import torch
import triton
import triton.language as tl


@triton.jit
def _scale(x, y, count, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y + at, tl.load(x + at, mask=mask) * factor, mask=mask)


def kernel(x, factor):
    y = torch.empty_like(x)
    _scale[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), factor, BLOCK=1024)
    return y
"""
CUDA = Pack(
    name="cuda",
    title="NVIDIA GPUs",
    languages=("triton", "cuda"),
    facts=(
        "Triton kernels are launched from kernel.py; CUDA C++ stands in CUDA_SOURCE and is compiled by nvcc.",
        "A call is timed as a graph of its launches: no host code counts, but each launch costs about 2 us.",
        "Loads of 16 bytes for each thread, neighbouring threads on neighbouring addresses, reach the bandwidth.",
        "One kernel that reads every byte once beats several that pass results through memory.",
    ),
    example=EXAMPLE,
    example_of="one scaling of a tensor in Triton",
    metrics=(
        Meaning("ncu.dram_percent", "%", "use of the memory's bandwidth", "memory"),
        Meaning("ncu.compute_percent", "%", "use of the multiprocessors", "compute"),
        Meaning("ncu.l2_hit_percent", "%", "accesses that the second-level cache answers", None),
        Meaning("ncu.occupancy_percent", "%", "warps that are there to hide waiting", None),
        Meaning("ncu.waves", "1", "grid divided by what the device holds; under 1, some is idle", None),
        *TORCH_METRICS,
    ),
    readers={"ncu": ncu_csv, "torch": trace_times},
)
