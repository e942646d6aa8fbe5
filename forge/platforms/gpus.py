"""Processors a task can name, with what their vendors publish.

Peak bandwidths and rates are the vendors' data-sheet figures, for orientation in prompts; a floor is always computed
from what was measured on the machine itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forge.domain.target import PlatformName, Target, gpu_slug
from forge.domain.tensors import DType
from forge.errors import UnknownName


@dataclass(frozen=True, kw_only=True)
class Processor:
    """One processor model."""

    slug: str
    name: str
    platform: PlatformName
    arch: str
    peak_bandwidth_gb_s: float | None
    """Data sheet, decimal gigabytes per second."""
    source: str
    peak_tflop_s: Mapping[DType, float] = field(default_factory=dict)
    """Dense, without sparsity, accumulated in fp32: fp32 on the vector units, fp16 and bf16 on the matrix units."""


PROCESSORS: dict[str, Processor] = {
    processor.slug: processor
    for processor in (
        Processor(
            slug="cpu",
            name="this machine's processor",
            platform="cpu",
            arch="host",
            peak_bandwidth_gb_s=None,
            source="no data sheet is used: floors are measured on the machine itself",
        ),
        Processor(
            slug="h200",
            name="NVIDIA H200",
            platform="cuda",
            arch="sm_90",
            peak_bandwidth_gb_s=4800.0,
            source="NVIDIA H200 Tensor Core GPU data sheet",
            peak_tflop_s={"fp32": 67.0, "fp16": 989.4, "bf16": 989.4},
        ),
        Processor(
            slug="h100",
            name="NVIDIA H100 SXM",
            platform="cuda",
            arch="sm_90",
            peak_bandwidth_gb_s=3350.0,
            source="NVIDIA H100 Tensor Core GPU data sheet",
            peak_tflop_s={"fp32": 67.0, "fp16": 989.4, "bf16": 989.4},
        ),
        Processor(
            slug="a100",
            name="NVIDIA A100 80GB SXM",
            platform="cuda",
            arch="sm_80",
            peak_bandwidth_gb_s=2039.0,
            source="NVIDIA A100 Tensor Core GPU data sheet",
            peak_tflop_s={"fp32": 19.5, "fp16": 312.0, "bf16": 312.0},
        ),
        Processor(
            slug="l40s",
            name="NVIDIA L40S",
            platform="cuda",
            arch="sm_89",
            peak_bandwidth_gb_s=864.0,
            source="NVIDIA L40S data sheet",
            peak_tflop_s={"fp32": 91.6, "fp16": 362.05, "bf16": 362.05},
        ),
        Processor(
            slug="l4",
            name="NVIDIA L4",
            platform="cuda",
            arch="sm_89",
            peak_bandwidth_gb_s=300.0,
            source="NVIDIA L4 data sheet",
            peak_tflop_s={"fp32": 30.3, "fp16": 121.0, "bf16": 121.0},
        ),
        Processor(
            slug="rtx4070",
            name="NVIDIA GeForce RTX 4070",
            platform="cuda",
            arch="sm_89",
            peak_bandwidth_gb_s=504.2,
            source="NVIDIA Ada GPU architecture white paper, RTX 4070 family",
            peak_tflop_s={"fp32": 29.15, "fp16": 58.3, "bf16": 58.3},
        ),
    )
}


def find_target(untrusted_name: str) -> Target:
    """Return the target called `untrusted_name` ("H200", "RTX 4070", "cpu"), exactly, or raise UnknownName."""
    processor = PROCESSORS.get(gpu_slug(untrusted_name))
    if processor is None:
        raise UnknownName("gpu", untrusted_name, list(PROCESSORS))
    return Target(platform=processor.platform, gpu=processor.slug)
