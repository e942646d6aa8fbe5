"""Gated RMSNorm, quantised: y = int8(rmsnorm(x) * silu(gate) * weight / scale), one scale for each row.

The gated norm of Mamba-2 (Dao and Gu 2024) and Qwen3-Next's linear attention, with the per-token symmetric int8
quantisation of SmoothQuant (Xiao et al. 2023) in the same pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, TensorSpec
from forge.operations.operation import Expectation, Expected, Operation, Quantised
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch

LARGEST, FLOOR = 127.0, 1e-10
"""Largest int8 number that is used, and the smallest value that a row's maximum counts as, so that no scale is 0."""
BESIDE_THE_SUM = 8.0
"""Constant added to sqrt(n) in the error bound, for the steps besides the sum, as in docs/numerics.md."""
STEEPEST = 128.0
"""Size of a gate beyond which its sigmoid is 0 or 1 in fp32."""


def gated_rmsnorm_quant(
    x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """X, gate [batch, hidden_size], weight [hidden_size] -> y [batch, hidden_size] in int8, scale [batch] in fp32."""
    import torch

    h, g = x.float(), gate.float()
    h = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * (g * torch.sigmoid(g)) * weight.float()
    scale = h.abs().amax(-1).clamp(min=1e-10) / 127.0
    return (h / scale.unsqueeze(-1)).round().clamp(-127.0, 127.0).to(torch.int8), scale


# Compute y [batch, hidden_size], before it is rounded to int8, and scale [batch] in fp64.
# x and gate have y's shape; weight is [hidden_size]. The uncertainty of y and the error scale of `scale` [batch] grow
# with the gate's magnitude.
def oracle(x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[Expected, ...]:
    """The same in fp64; y before it is rounded."""
    import torch

    h, g = x.double(), gate.double()
    lost = (drift_share(h.square()) / 2).squeeze(-1)
    h = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * (g * torch.sigmoid(g)) * weight.double()
    scale = h.abs().amax(-1).clamp(min=FLOOR) / LARGEST
    unrounded = h / scale.unsqueeze(-1)
    steepness = g.abs().clamp(max=STEEPEST)
    beside = steepness + steepness.amax(-1, keepdim=True)
    growth = 4 * (x.shape[-1] ** 0.5 + BESIDE_THE_SUM) + beside
    size = scale * (1 + steepness.amax(-1) / 8)
    return (
        Quantised(unrounded=unrounded, uncertainty=UNIT_ROUNDOFF["fp32"] * growth * unrounded.abs()),
        Expectation(value=scale, scale=size, terms=x.shape[-1], drift=lost),
    )


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    rows, width = shape["batch"], shape["hidden_size"]
    return (2 * rows * width + width) * ITEMSIZE_BYTES[dtype] + rows * width + rows * 4


def _flops(shape: Mapping[str, int]) -> int:
    return 10 * shape["batch"] * shape["hidden_size"]


Pair = tuple["torch.Tensor", "torch.Tensor"]
Product = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", float], "torch.Tensor"]


def _quantised(h: torch.Tensor) -> Pair:
    import torch

    scale = h.abs().amax(-1).clamp(min=FLOOR) / LARGEST
    return (h / scale.unsqueeze(-1)).round().clamp(-LARGEST, LARGEST).to(torch.int8), scale


def _of(product: Product) -> Callable[..., Pair]:
    """Return an operation with another product in fp32, quantised correctly."""
    return lambda x, gate, weight, eps: _quantised(product(x.float(), gate.float(), weight.float(), eps))


def _norm(h: torch.Tensor, eps: float) -> torch.Tensor:
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt()


def _product(h: torch.Tensor, g: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    return _norm(h, eps) * (g * g.sigmoid()) * w


def _one_scale(x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float) -> Pair:
    """Use one scale for all rows, from the largest magnitude of all."""
    import torch

    h = _product(x.float(), gate.float(), weight.float(), eps)
    scale = h.abs().amax().clamp(min=FLOOR).expand(h.shape[0]) / LARGEST
    return (h / scale.unsqueeze(-1)).round().to(torch.int8), scale.contiguous()


def _truncated(x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float) -> Pair:
    """Round towards zero instead of to the nearest."""
    import torch

    h = _product(x.float(), gate.float(), weight.float(), eps)
    scale = _quantised(h)[1]
    return (h / scale.unsqueeze(-1)).clamp(-LARGEST, LARGEST).trunc().to(torch.int8), scale


MUTANTS = {
    "eps dropped": _of(lambda h, g, w, _: _product(h, g, w, 0.0).nan_to_num()),
    "eps fixed at 1e-5": _of(lambda h, g, w, _: _product(h, g, w, 1e-5)),
    "gate ignored": _of(lambda h, _, w, eps: _norm(h, eps) * w),
    "sigmoid for silu": _of(lambda h, g, w, eps: _norm(h, eps) * g.sigmoid() * w),
    "silu of the norm, not of the gate": _of(lambda h, g, w, eps: _norm(h, eps).sigmoid() * _norm(h, eps) * g * w),
    "gated before the norm": _of(lambda h, g, w, eps: _norm(h * g * g.sigmoid(), eps) * w),
    "weight ignored": _of(lambda h, g, w, eps: _product(h, g, w * 0 + 1, eps)),
    "weight plus one": _of(lambda h, g, w, eps: _product(h, g, w + 1, eps)),
    "sum for mean": _of(
        lambda h, g, w, eps: h * h.square().sum(-1, keepdim=True).add(eps).rsqrt() * g * g.sigmoid() * w
    ),
    "one scale for all rows": _one_scale,
    "truncated": _truncated,
}


def _by_reciprocal(x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float) -> Pair:
    """Compute the quotient as a product with 127 over the maximum, and silu as a quotient."""
    import torch

    h, g = x.float(), gate.float()
    h = _norm(h, eps) * weight.float() * (g / (1 + (-g).exp()))
    largest = h.abs().amax(-1, keepdim=True).clamp(min=FLOOR)
    return (h * (LARGEST / largest)).round().clamp(-LARGEST, LARGEST).to(torch.int8), largest.squeeze(-1) * (
        1 / LARGEST
    )


def _in_lanes(x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float) -> Pair:
    """Add squares in eight lanes, then across the lanes."""
    h, g = x.float(), gate.float()
    lanes = [h[..., lane::8].square().sum(-1, keepdim=True) for lane in range(8)]
    root = (sum(lanes[1:], lanes[0]) / h.shape[-1] + eps).rsqrt()
    return _quantised(h * (root * g * g.sigmoid()) * weight.float())


VARIANTS = {"by the scale's reciprocal": _by_reciprocal, "squares added in lanes": _in_lanes}


GATED_RMSNORM_QUANT = Operation(
    name="gated_rmsnorm_quant",
    summary="RMSNorm times a gate's SiLU and a weight, quantised to int8 with a scale for each row",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="x", axes=("batch", "hidden_size")),
        TensorSpec(name="gate", axes=("batch", "hidden_size")),
        TensorSpec(name="weight", axes=("hidden_size",)),
    ),
    scalars={"eps": 1e-6},
    outputs=(
        TensorSpec(name="y", axes=("batch", "hidden_size"), element="int8"),
        TensorSpec(name="scale", axes=("batch",), element="fp32"),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="gated_rmsnorm_quant(x, gate, weight, eps) -> (y, scale)",
    reference=gated_rmsnorm_quant,
    oracle=oracle,
    numerics=(
        "Everything stays in fp32 until it is quantised. The mean of n = hidden_size squares errs by about "
        "u_acc (sqrt(n) + 8) relative to itself. The sigmoid errs by about u_acc |gate| from its exponential, "
        "up to |gate| = 128, where it is 0 or 1. Products add a u_acc each. scale is the largest magnitude "
        "over 127: S = scale (1 + max |gate| / 8). y is the whole number nearest to h / scale, ties to even, "
        "and both of them err. Their quotient errs by u_acc (4 (sqrt(n) + 8) + |gate| + max |gate|) relative "
        "to itself. Each element is the number that some value within that uncertainty rounds to. A row of "
        "zeros has the scale 1e-10 / 127."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 64, "hidden_size": 8192},
        {"batch": 2048, "hidden_size": 4096},
    ),
    row_axis="batch",
    reduced_axis="hidden_size",
    specials="unspecified",
    relations=(RowsIndependent(), RowsPermuted(), Scaled(inputs={"weight": 1}, outputs={"y": 0, "scale": 1})),
    mutants=MUTANTS,
    variants=VARIANTS,
)
