"""AMD Instinct accelerators: tabulated for plans and comparison; Forge runs nothing on them yet.

Compute units, local data share and L2 are from AMD's "GPU specifications" in the ROCm documentation. Rates, power and
links are from each data sheet. A sheet's fp32 vector rate is `fp32`; CDNA 4 has no tf32.
"""

from functools import partial

from forge.platforms.processor import Processor, RateType

_CDNA3: dict[RateType, float] = {
    "fp32": 163.4,
    "tf32": 653.7,
    "fp16": 1307.4,
    "bf16": 1307.4,
    "fp8": 2614.9,
    "int8": 2614.9,
}

_instinct = partial(Processor, platform="rocm", market="data_centre")

AMD = (
    _instinct(
        slug="mi250x",
        name="AMD Instinct MI250X",
        arch="gfx90a",
        source="AMD Instinct MI250X data sheet: two dies in one package",
        peak_bandwidth_gb_s=3276.8,
        peak_tflop_s={"fp32": 47.9, "fp16": 383.0, "bf16": 383.0, "int8": 383.0},
        memory_gb=128.0,
        multiprocessors=220,
        shared_kb_per_multiprocessor=64,
        l2_mb=16.0,
        interconnect_gb_s=800.0,
        devices=2,
        aliases=("instinctmi250x", "amdinstinctmi250x"),
    ),
    _instinct(
        slug="mi300x",
        name="AMD Instinct MI300X",
        arch="gfx942",
        source="AMD Instinct MI300X data sheet",
        peak_bandwidth_gb_s=5300.0,
        peak_tflop_s=_CDNA3,
        memory_gb=192.0,
        multiprocessors=304,
        shared_kb_per_multiprocessor=64,
        l2_mb=32.0,
        interconnect_gb_s=896.0,
        aliases=("instinctmi300x", "amdinstinctmi300x"),
    ),
    _instinct(
        slug="mi325x",
        name="AMD Instinct MI325X",
        arch="gfx942",
        source="AMD Instinct MI325X data sheet",
        peak_bandwidth_gb_s=6000.0,
        peak_tflop_s=_CDNA3,
        memory_gb=256.0,
        multiprocessors=304,
        shared_kb_per_multiprocessor=64,
        l2_mb=32.0,
        interconnect_gb_s=896.0,
        aliases=("instinctmi325x", "amdinstinctmi325x"),
    ),
    _instinct(
        slug="mi355x",
        name="AMD Instinct MI355X",
        arch="gfx950",
        source="AMD Instinct MI355X data sheet; fp4 is MXFP4",
        peak_bandwidth_gb_s=8000.0,
        peak_tflop_s={
            "fp32": 157.3,
            "fp16": 2516.6,
            "bf16": 2516.6,
            "fp8": 5033.2,
            "int8": 5033.2,
            "fp4": 10066.3,
        },
        memory_gb=288.0,
        multiprocessors=256,
        shared_kb_per_multiprocessor=160,
        l2_mb=32.0,
        interconnect_gb_s=1075.0,
        aliases=("instinctmi355x", "amdinstinctmi355x"),
    ),
)
