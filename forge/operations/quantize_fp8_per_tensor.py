"""Per-tensor quantisation to fp8 e4m3: scale = max |x| / 448 of all rows together, y = x / scale.

Sources: the format is OCP's 8-bit floating point specification (2023), e4m3, whose largest number is 448. One dynamic
scale for a tensor is as in vLLM (dynamic_scaled_fp8_quant) and Transformer Engine's current scaling. The maximum is
at least 1e-10, as in quantize_fp8. Rows depend on each other only through the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, TensorSpec
from forge.operations.operation import Expectation, Expected, Operation, Quantised
from forge.operations.quantize_fp8 import rounded, truncated

if TYPE_CHECKING:
    import torch

LARGEST, FLOOR = 448.0, 1e-10
"""Largest number of fp8 e4m3, and the smallest value that a maximum counts as, so that no scale is 0."""
ROUNDINGS = 8
"""Largest error of the quotient in u of fp32: the scale's division, its reciprocal, the product, and a margin."""


def quantize_fp8_per_tensor(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """X [batch, hidden_size] -> y [batch, hidden_size] in fp8 e4m3, scale [1] in fp32: x is about y * scale."""
    import torch

    h = x.float()
    largest = torch.cat([h.abs().flatten(), h.new_full((1,), 1e-10)]).amax(0, keepdim=True)
    scale = largest / 448.0
    return (h / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale


# Compute y [batch, hidden_size], before it is rounded to fp8, and scale [1] in fp64, from x like y.
# The uncertainty of y is that of its roundings in fp32; the error scale of `scale` is `scale`.
def oracle(x: torch.Tensor) -> tuple[Expected, ...]:
    """The same in fp64; y before it is rounded."""
    h = x.double()
    scale = _largest(h) / LARGEST
    unrounded = h / scale
    uncertainty = ROUNDINGS * UNIT_ROUNDOFF["fp32"] * unrounded.abs()
    return (
        Quantised(unrounded=unrounded, uncertainty=uncertainty, grid="fp8_e4m3"),
        Expectation(value=scale, scale=scale, terms=1),
    )


def _largest(h: torch.Tensor, floor: float = FLOOR) -> torch.Tensor:
    """Return the largest magnitude [1], at least `floor`."""
    import torch

    return torch.cat([h.abs().flatten(), h.new_full((1,), floor)]).amax(0, keepdim=True)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return shape["batch"] * shape["hidden_size"] * (ITEMSIZE_BYTES[dtype] + 1) + 4


def _flops(shape: Mapping[str, int]) -> int:
    return 3 * shape["batch"] * shape["hidden_size"]


Pair = tuple["torch.Tensor", "torch.Tensor"]
Maximum = Callable[["torch.Tensor"], "torch.Tensor"]


def _scaled(maximum: Maximum, largest: float = LARGEST) -> Callable[..., Pair]:
    """Return the operation with another maximum [1], or another largest number."""

    def function(x: torch.Tensor) -> Pair:
        scale = maximum(x.float()) / largest
        return rounded(x.float() / scale), scale

    return function


def _by_row(x: torch.Tensor) -> Pair:
    """Use a scale for each row, and return the largest."""
    scale = x.float().abs().amax(-1, keepdim=True).clamp(min=FLOOR) / LARGEST
    return rounded(x.float() / scale), _largest(x.float()) / LARGEST


def _by_reciprocal(x: torch.Tensor) -> Pair:
    """Multiply by the reciprocal of the scale, as most kernels do."""
    scale = _largest(x.float()) * (1 / LARGEST)
    return rounded(x.float() * (1 / scale)), scale


def _truncated(x: torch.Tensor) -> Pair:
    scale = _largest(x.float()) / LARGEST
    return truncated(x.float() / scale), scale


MUTANTS = {
    "a scale for each row": _by_row,
    "the first row's scale": _scaled(lambda h: _largest(h[:1])),
    "the last row left out": _scaled(lambda h: _largest(h[:-1])),
    "the last column left out of the maximum": _scaled(lambda h: _largest(h[:, :-1])),
    "the maximum of the first half": _scaled(lambda h: _largest(h[:, : (h.shape[1] + 1) // 2])),
    "the mean of the rows' maxima": _scaled(lambda h: h.abs().amax(-1).mean().clamp(min=FLOOR).view(1)),
    "no floor": _scaled(lambda h: _largest(h, 0.0)),
    "a floor of 1e-4": _scaled(lambda h: _largest(h, 1e-4)),
    "the largest value, not the largest magnitude": _scaled(lambda h: _largest(h.clamp(min=0.0))),
    "e4m3fnuz's 240": _scaled(_largest, 240.0),
    "truncated": _truncated,
    "the scale's reciprocal": lambda x: (_by_reciprocal(x)[0], 1 / _by_reciprocal(x)[1]),
}


VARIANTS = {
    "by the scale's reciprocal": _by_reciprocal,
    "448 over the maximum": lambda x: (
        rounded(x.float() * (LARGEST / _largest(x.float()))),
        _by_reciprocal(x)[1],
    ),
}


QUANTIZE_FP8_PER_TENSOR = Operation(
    name="quantize_fp8_per_tensor",
    summary="per-tensor quantisation to fp8 e4m3 with a dynamic scale",
    axes=("batch", "hidden_size"),
    inputs=(TensorSpec(name="x", axes=("batch", "hidden_size")),),
    scalars={},
    outputs=(
        TensorSpec(name="y", axes=("batch", "hidden_size"), element="fp8_e4m3"),
        TensorSpec(name="scale", axes=("hidden_size",), element="fp32", at_most={"hidden_size": 1}),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="quantize_fp8_per_tensor(x) -> (y, scale)",
    reference=quantize_fp8_per_tensor,
    oracle=oracle,
    numerics=(
        "scale is one maximum of the whole tensor, which is exact, and one division: S = scale, n = 1. y is "
        "the fp8 number nearest to x / scale, ties to even. An honest kernel divides by the scale, or "
        "multiplies by its reciprocal or by 448 / maximum, in fp32. These are up to 4 roundings, so its "
        "quotient is within 8 u_acc |x / scale| of the exact one. Each element is the fp8 number that some "
        "value within that uncertainty rounds to. Everything saturates at 448; a tensor of zeros, or without "
        "rows, has the scale 1e-10 / 448."
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
    relations=(RowsPermuted(), Scaled(inputs={"x": 1}, outputs={"y": 0, "scale": 1})),
    mutants=MUTANTS,
    variants=VARIANTS,
)
