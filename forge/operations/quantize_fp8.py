"""Per-token quantisation to fp8 e4m3: scale = max |x| / 448, y = x / scale, row by row.

Sources: the format is OCP's 8-bit floating point specification (2023), e4m3, whose largest number is 448. Per-token
dynamic scales are as in vLLM (dynamic_per_token_scaled_fp8_quant) and DeepSeek-V3's report (2024, section 3.3). A
row's maximum is at least 1e-10, as in SGLang's per_token_group_quant_fp8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, TensorSpec
from forge.operations.operation import Expectation, Expected, Operation, Quantised

if TYPE_CHECKING:
    import torch

LARGEST, FLOOR = 448.0, 1e-10
"""Largest number of fp8 e4m3, and the smallest value that a maximum counts as, so that no scale is 0."""
ROUNDINGS = 8
"""Largest error of the quotient in u of fp32: the scale's division, its reciprocal, the product, and a margin."""


def quantize_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """X [batch, hidden_size] -> y [batch, hidden_size] in fp8 e4m3, scale [batch] in fp32: x is about y * scale."""
    import torch

    h = x.float()
    scale = h.abs().amax(-1).clamp(min=1e-10) / 448.0
    y = (h / scale.unsqueeze(-1)).clamp(-448.0, 448.0)
    return y.to(torch.float8_e4m3fn), scale


# Compute y [batch, hidden_size], before it is rounded to fp8, and scale [batch] in fp64, from x like y.
# The uncertainty of y is that of its roundings in fp32; the error scale of `scale` is `scale`.
def oracle(x: torch.Tensor) -> tuple[Expected, ...]:
    """The same in fp64; y before it is rounded."""
    h = x.double()
    scale = h.abs().amax(-1).clamp(min=FLOOR) / LARGEST
    unrounded = h / scale.unsqueeze(-1)
    uncertainty = ROUNDINGS * UNIT_ROUNDOFF["fp32"] * unrounded.abs()
    return (
        Quantised(unrounded=unrounded, uncertainty=uncertainty, grid="fp8_e4m3"),
        Expectation(value=scale, scale=scale, terms=1),
    )


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    rows, width = shape["batch"], shape["hidden_size"]
    return rows * width * (ITEMSIZE_BYTES[dtype] + 1) + rows * 4


def _flops(shape: Mapping[str, int]) -> int:
    return 3 * shape["batch"] * shape["hidden_size"]


Pair = tuple["torch.Tensor", "torch.Tensor"]


def rounded(quotient: torch.Tensor) -> torch.Tensor:
    """Round to fp8 e4m3, with larger numbers cut to the largest."""
    import torch

    return quotient.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def _scaled(maximum: Callable[[torch.Tensor], torch.Tensor], largest: float = LARGEST) -> Callable[..., Pair]:
    """Return the operation with another maximum [batch] for each row, or another largest number."""

    def function(x: torch.Tensor) -> Pair:
        scale = maximum(x.float()) / largest
        return rounded(x.float() / scale.unsqueeze(-1)), scale

    return function


def _by_reciprocal(x: torch.Tensor) -> Pair:
    """Multiply by the reciprocal of the scale, as most kernels do."""
    scale = x.float().abs().amax(-1).clamp(min=FLOOR) * (1 / LARGEST)
    return rounded(x.float() * (1 / scale).unsqueeze(-1)), scale


def truncated(quotient: torch.Tensor) -> torch.Tensor:
    """Round to fp8 e4m3 towards zero instead of to the nearest."""
    import torch

    y = quotient.clamp(-LARGEST, LARGEST)
    quanta = torch.exp2((y.frexp().exponent - 1).clamp(min=-6) - 3.0)
    return ((y / quanta).trunc() * quanta).to(torch.float8_e4m3fn)


def _truncated(x: torch.Tensor) -> Pair:
    scale = x.float().abs().amax(-1).clamp(min=FLOOR) / LARGEST
    return truncated(x.float() / scale.unsqueeze(-1)), scale


MUTANTS = {
    "one scale for all rows": _scaled(lambda h: h.abs().amax().clamp(min=FLOOR).expand(h.shape[0]).contiguous()),
    "no floor": _scaled(lambda h: h.abs().amax(-1)),
    "a floor of 1e-4": _scaled(lambda h: h.abs().amax(-1).clamp(min=1e-4)),
    "the largest value, not the largest magnitude": _scaled(lambda h: h.amax(-1).clamp(min=FLOOR)),
    "e4m3fnuz's 240": _scaled(lambda h: h.abs().amax(-1).clamp(min=FLOOR), 240.0),
    "the maximum of the first half": _scaled(lambda h: h.abs()[:, : (h.shape[1] + 1) // 2].amax(-1).clamp(min=FLOOR)),
    "truncated": _truncated,
    "the scale's reciprocal": lambda x: (_by_reciprocal(x)[0], 1 / _by_reciprocal(x)[1]),
}


VARIANTS = {
    "by the scale's reciprocal": _by_reciprocal,
    "448 over the maximum": lambda x: (
        rounded(x.float() * (LARGEST / x.float().abs().amax(-1, keepdim=True).clamp(min=FLOOR))),
        _by_reciprocal(x)[1],
    ),
}


QUANTIZE_FP8 = Operation(
    name="quantize_fp8",
    summary="per-token quantisation to fp8 e4m3 with dynamic scales",
    axes=("batch", "hidden_size"),
    inputs=(TensorSpec(name="x", axes=("batch", "hidden_size")),),
    scalars={},
    outputs=(
        TensorSpec(name="y", axes=("batch", "hidden_size"), element="fp8_e4m3"),
        TensorSpec(name="scale", axes=("batch",), element="fp32"),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="quantize_fp8(x) -> (y, scale)",
    reference=quantize_fp8,
    oracle=oracle,
    numerics=(
        "scale is a maximum, which is exact, and one division: S = scale, n = 1. y is the fp8 number nearest "
        "to x / scale, ties to even. An honest kernel divides by the scale, or multiplies by its reciprocal "
        "or by 448 / maximum, in fp32. These are up to 4 roundings, so its quotient is within 8 u_acc |x / "
        "scale| of the exact one. Each element is the fp8 number that some value within that uncertainty "
        "rounds to. Everything saturates at 448; a row of zeros has the scale 1e-10 / 448."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 64, "hidden_size": 7168},
        {"batch": 2048, "hidden_size": 4096},
    ),
    row_axis="batch",
    reduced_axis="hidden_size",
    specials="unspecified",
    relations=(RowsIndependent(), RowsPermuted(), Scaled(inputs={"x": 1}, outputs={"y": 0, "scale": 1})),
    mutants=MUTANTS,
    variants=VARIANTS,
)
