"""The published facts about one processor model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from forge.domain.target import PlatformName
from forge.domain.tensors import DType

Market = Literal["consumer", "workstation", "data_centre", "apple", "cpu"]
"""Market that the vendor sells it to."""
RateType = Literal[DType, "tf32", "fp8", "int8", "fp4"]
"""Type that a rate is for: the type in which operands are multiplied."""


@dataclass(frozen=True, kw_only=True)
class Processor:
    """One processor model with its vendor's figures. A figure that the vendor doesn't publish is None or absent."""

    slug: str
    name: str
    platform: PlatformName
    market: Market
    arch: str
    source: str
    peak_bandwidth_gb_s: float | None = None
    """Peak bandwidth of the device's memory in decimal gigabytes per second."""
    peak_tflop_s: Mapping[RateType, float] = field(default_factory=dict)
    """Peak rates by type, without sparsity: fp32 on the vector units, the others on the matrix units. Sums are in
    fp32, for int8 in int32. Types that the processor doesn't multiply natively are absent."""
    memory_gb: float | None = None
    """Memory size as the vendor labels it; the largest if there are several."""
    multiprocessors: int | None = None
    """Number of streaming multiprocessors, compute units or GPU cores."""
    shared_kb_per_multiprocessor: int | None = None
    """Shared memory that kernels can use (NVIDIA), or local data share (AMD), in KiB."""
    l2_mb: float | None = None
    """Size of the last cache that all multiprocessors of a die share, summed over the dies, in MiB. AMD's Infinity
    Cache isn't counted."""
    interconnect_gb_s: float | None = None
    """Bandwidth to other GPUs, both directions together: NVLink, Infinity Fabric or else PCIe."""
    devices: int = 1
    """Number of devices that software sees. An MI250X is two, each with half of all figures."""
    aliases: tuple[str, ...] = ()
    """Other slugs for exactly this model, including its driver's name."""
