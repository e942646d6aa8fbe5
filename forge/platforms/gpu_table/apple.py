"""Apple's processors: tabulated for plans and comparison; Forge runs nothing on their GPUs yet.

Memory is shared with the processor and comes in several sizes; the largest is given. Apple publishes no matrix rates,
no shared memory and no power, and an fp32 rate only for the M2. GPUs aren't connected to each other.
"""

from forge.platforms.processor import Processor

_SOURCE = "Apple, technical specifications and press release of the"


def _apple(
    slug: str, name: str, bandwidth_gb_s: float, memory_gb: float, cores: int, fp32: float | None = None
) -> Processor:
    return Processor(
        slug=slug,
        name=f"Apple {name}",
        platform="metal",
        market="apple",
        arch="apple",
        source=f"{_SOURCE} {name}",
        peak_bandwidth_gb_s=bandwidth_gb_s,
        peak_tflop_s={} if fp32 is None else {"fp32": fp32},
        memory_gb=memory_gb,
        multiprocessors=cores,
        aliases=(f"apple{slug}",),
    )


APPLE = (
    _apple("m2", "M2", 100.0, 24.0, 10, 3.6),
    _apple("m2max", "M2 Max", 400.0, 96.0, 38),
    _apple("m2ultra", "M2 Ultra", 800.0, 192.0, 76),
    _apple("m4", "M4", 120.0, 32.0, 10),
    _apple("m4pro", "M4 Pro", 273.0, 64.0, 20),
    _apple("m4max", "M4 Max", 546.0, 128.0, 40),
)
