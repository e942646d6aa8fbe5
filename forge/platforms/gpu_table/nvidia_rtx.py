"""NVIDIA's GPUs for games and for workstations.

GeForce cards accumulate fp16 and fp8 products in fp32 at half the rate of fp16 accumulation. The rates here are with
fp32 accumulation. No card has NVLink; PCIe x16 connects them, counted in both directions.
"""

from functools import partial

from forge.platforms.processor import Processor

_card = partial(Processor, platform="cuda", shared_kb_per_multiprocessor=100)

NVIDIA_RTX = (
    _card(
        slug="rtx4070",
        name="NVIDIA GeForce RTX 4070",
        market="consumer",
        arch="sm_89",
        source="NVIDIA Ada GPU architecture white paper, RTX 4070 family",
        peak_bandwidth_gb_s=504.2,
        peak_tflop_s={"fp32": 29.15, "tf32": 29.15, "fp16": 58.3, "bf16": 58.3, "fp8": 116.6, "int8": 233.2},
        memory_gb=12.0,
        multiprocessors=46,
        l2_mb=36.0,
        interconnect_gb_s=64.0,
        aliases=("geforcertx4070",),
    ),
    _card(
        slug="rtx4090",
        name="NVIDIA GeForce RTX 4090",
        market="consumer",
        arch="sm_89",
        source="NVIDIA Ada GPU architecture white paper, appendix A",
        peak_bandwidth_gb_s=1008.0,
        peak_tflop_s={"fp32": 82.6, "tf32": 82.6, "fp16": 165.2, "bf16": 165.2, "fp8": 330.3, "int8": 660.6},
        memory_gb=24.0,
        multiprocessors=128,
        l2_mb=72.0,
        interconnect_gb_s=64.0,
        aliases=("geforcertx4090",),
    ),
    _card(
        slug="rtx5090",
        name="NVIDIA GeForce RTX 5090",
        market="consumer",
        arch="sm_120",
        source="NVIDIA RTX Blackwell GPU architecture white paper, appendix",
        peak_bandwidth_gb_s=1792.0,
        peak_tflop_s={
            "fp32": 104.8,
            "tf32": 104.8,
            "fp16": 209.5,
            "bf16": 209.5,
            "fp8": 419.0,
            "int8": 838.0,
            "fp4": 1676.0,
        },
        memory_gb=32.0,
        multiprocessors=170,
        l2_mb=96.0,
        interconnect_gb_s=128.0,
        aliases=("geforcertx5090",),
    ),
    _card(
        slug="rtx6000ada",
        name="NVIDIA RTX 6000 Ada Generation",
        market="workstation",
        arch="sm_89",
        source="NVIDIA RTX 6000 Ada Generation data sheet and Ada GPU architecture white paper for professionals",
        peak_bandwidth_gb_s=960.0,
        peak_tflop_s={
            "fp32": 91.1,
            "tf32": 182.1,
            "fp16": 364.2,
            "bf16": 364.2,
            "fp8": 728.5,
            "int8": 728.5,
        },
        memory_gb=48.0,
        multiprocessors=142,
        l2_mb=96.0,
        interconnect_gb_s=64.0,
        aliases=("rtx6000adageneration",),
    ),
)
