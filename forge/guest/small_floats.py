"""Runs beside hostile code. Makes Triton's interpreter round to bf16 and to fp8 as GPUs do."""

from typing import Any

LARGEST = {"fp8e4nv": 448.0, "fp8e5": 57344.0}
"""Largest finite numbers of Triton's types with 8 bits that GPUs have, by name."""
_WIDER = ("fp32", "fp16", "bf16")


def round_as_a_gpu() -> None:
    """Replace the interpreter's conversions to bf16 and to fp8 by those of GPUs, which round to nearest even.

    By itself it cuts bf16 off, so that half of all results would be off by one unit in the last place. In fp8 it
    loses the carry from the significand into the exponent, so that 7.9 became 4. The judge would refuse both.
    """
    import torch
    import triton.language as tl
    from triton._C.libtriton import ir
    from triton.runtime import interpreter

    cut = interpreter._convert_float
    kinds = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}

    def widened(data: Any, source: tl.dtype) -> torch.Tensor:
        if source == tl.bfloat16:
            return torch.tensor(data).view(torch.bfloat16).float()
        return torch.tensor(data, dtype=torch.float32)

    def convert(data, source, target, rounding):  # type: ignore[no-untyped-def]  # numpy and triton have no types here
        if rounding != ir.ROUNDING_MODE.RTZ and source.name in _WIDER:
            if target.name in kinds:
                # PTX rounds so by `cvt.rn.satfinite`; NaN stays NaN
                most = LARGEST[target.name]
                rounded = widened(data, source).clamp(-most, most).to(kinds[target.name])
                return rounded.view(torch.uint8).numpy()
            if source == tl.float32 and target == tl.bfloat16:
                return torch.tensor(data, dtype=torch.float32).to(torch.bfloat16).view(torch.uint16).numpy()
        return cut(data, source, target, rounding)

    interpreter._convert_float = convert
