"""What is known of one processor model before anything ran on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from forge.domain.target import PlatformName
from forge.domain.tensors import DType

Market = Literal["consumer", "workstation", "data_centre", "apple", "cpu"]
"""Whom the vendor sells it to."""
RateType = Literal[DType, "tf32", "fp8", "int8", "fp4"]
"""What a rate is of: the type that the operands are multiplied in."""


@dataclass(frozen=True, kw_only=True)
class Processor:
    """One processor model, as its vendor publishes it; a figure that the vendor doesn't publish is None or absent."""

    slug: str
    name: str
    platform: PlatformName
    market: Market
    arch: str
    source: str
    peak_bandwidth_gb_s: float | None = None
    """Decimal gigabytes per second of the device's memory."""
    peak_tflop_s: Mapping[RateType, float] = field(default_factory=dict)
    """Dense, without sparsity: fp32 on the vector units, the others on the matrix units, accumulated in fp32 (int8 in
    int32). A type that the processor doesn't multiply natively isn't there."""
    memory_gb: float | None = None
    """As the vendor labels it; where it comes in several sizes, the largest."""
    multiprocessors: int | None = None
    """Streaming multiprocessors, compute units or GPU cores."""
    shared_kb_per_multiprocessor: int | None = None
    """Shared memory (NVIDIA), local data share (AMD), in KiB; of NVIDIA's, what kernels can have of it."""
    l2_mb: float | None = None
    """Last cache that all multiprocessors of a die share, summed over the dies, in MiB; AMD's Infinity Cache isn't
    counted."""
    power_w: float | None = None
    """Thermal design or board power, the most that is allowed."""
    interconnect_gb_s: float | None = None
    """Between this GPU and its peers, both directions together: NVLink or Infinity Fabric, or else PCIe."""
    devices: int = 1
    """Devices that software sees of it: the two dies of an MI250X are two, each with half of everything."""
    aliases: tuple[str, ...] = ()
    """Other slugs that mean exactly this model, among them what its driver calls it."""
