"""The facts about a processor that a brief shows for one element type."""

from forge.domain.tensors import DType
from forge.lab.device.toolkit import gpu_code
from forge.platforms import Processor


def described(processor: Processor, dtype: DType) -> dict[str, object]:
    """Return names and values for a table. Figures that the vendor doesn't publish are left out."""
    rates = {name: processor.peak_tflop_s.get(name) for name in dict.fromkeys((dtype, "fp32"))}
    peaks = ", ".join(f"{name} {rate:g} TFLOP/s" for name, rate in rates.items() if rate is not None)
    lines: tuple[tuple[str, str | None], ...] = (
        ("memory", _with_unit(processor.memory_gb, "GB")),
        ("memory bandwidth", _with_unit(processor.peak_bandwidth_gb_s, "GB/s")),
        ("peak rates, dense", peaks or None),
        ("multiprocessors", _with_unit(processor.multiprocessors, "")),
        ("shared memory of each", _with_unit(processor.shared_kb_per_multiprocessor, "KiB")),
        ("last cache they share", _with_unit(processor.l2_mb, "MiB")),
    )
    return {
        "name": processor.name,
        "arch": processor.arch,
        "code": gpu_code(processor.arch) if processor.platform == "cuda" else None,
        "on_gpu": processor.platform != "cpu",
        "figures": [[name, value] for name, value in lines if value is not None],
    }


def _with_unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:g} {unit}".strip()
