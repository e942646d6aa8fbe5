"""RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight, per row.

Source of the definition: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4. The epsilon
is under the root, as in Llama's published model code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch


def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """X [batch, hidden_size], weight [hidden_size] -> y [batch, hidden_size], computed in fp32."""
    h = x.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype)


# Compute y [batch, hidden_size] in fp64, from x like y and weight [hidden_size]; the error scale is |y|.
def oracle(x: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[Expectation, ...]:
    """The same in fp64."""
    h, w = x.double(), weight.double()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * w
    return (
        Expectation(
            value=y,
            scale=y.abs(),
            terms=x.shape[-1],
            roundings=2,
            on_integers="exact_sums",
            last_factor=w.abs().expand_as(y),
            drift=(drift_share(h.square()) / 2).expand_as(y),
        ),
    )


def bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    """Count each element of x, weight and y once."""
    rows, width = shape["batch"], shape["hidden_size"]
    return (2 * rows * width + width) * ITEMSIZE_BYTES[dtype]


def flops(shape: Mapping[str, int]) -> int:
    """Count a square, a sum and two products for each element."""
    return 4 * shape["batch"] * shape["hidden_size"]


def _mutant(
    change: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor],
) -> Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]:
    """Return an operation with a wrong formula in fp32, its result in the operands' dtype."""
    return lambda x, weight, eps: change(x.float(), weight.float(), eps).to(x.dtype)


def _scale(h: torch.Tensor, eps: float, axis: int = -1) -> torch.Tensor:
    return h.square().mean(axis, keepdim=True).add(eps).rsqrt()


MUTANTS = {
    "eps dropped": _mutant(lambda h, w, _: h * _scale(h, 0.0).nan_to_num(posinf=0.0) * w),
    "eps outside the root": _mutant(lambda h, w, eps: h / (h.square().mean(-1, keepdim=True).sqrt() + eps) * w),
    "eps fixed at 1e-5": _mutant(lambda h, w, _: h * _scale(h, 1e-5) * w),
    "wrong axis": _mutant(lambda h, w, eps: h * _scale(h, eps, axis=0) * w),
    "weight ignored": _mutant(lambda h, _, eps: h * _scale(h, eps)),
    "weight plus one": _mutant(lambda h, w, eps: h * _scale(h, eps) * (w + 1)),
    "sum for mean": _mutant(lambda h, w, eps: h * h.square().sum(-1, keepdim=True).add(eps).rsqrt() * w),
    "mean subtracted": _mutant(
        lambda h, w, eps: (h - h.mean(-1, keepdim=True)) * _scale(h - h.mean(-1, keepdim=True), eps) * w
    ),
    "last column not summed": _mutant(
        lambda h, w, eps: h * (h[..., :-1].square().sum(-1, keepdim=True) / h.shape[-1]).add(eps).rsqrt() * w
    ),
    "one row's scale for all": _mutant(lambda h, w, eps: h * _scale(h[:1], eps) * w),
}


def _in_lanes(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Add squares in eight lanes, then across the lanes."""
    h = x.float()
    lanes = [h[..., lane::8].square().sum(-1, keepdim=True) for lane in range(8)]
    return (h * (sum(lanes[1:], lanes[0]) / h.shape[-1] + eps).rsqrt() * weight.float()).to(x.dtype)


def _from_the_end(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Add squares one after the other, from the last to the first."""
    h = x.float()
    total = h.square().flip(-1).cumsum(-1)[..., -1:]
    return (h * (total / h.shape[-1] + eps).rsqrt() * weight.float()).to(x.dtype)


def vendor(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Compute y [batch, hidden_size] with torch.nn.functional.rms_norm."""
    import torch

    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)


VARIANTS = {"squares added in lanes": _in_lanes, "squares added from the end": _from_the_end}


RMSNORM = Operation(
    name="rmsnorm",
    summary="root-mean-square normalisation of each row, scaled by a weight",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="x", axes=("batch", "hidden_size")),
        TensorSpec(name="weight", axes=("hidden_size",)),
    ),
    scalars={"eps": 1e-6},
    outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="rmsnorm(x, weight, eps) -> y",
    reference=rmsnorm,
    oracle=oracle,
    numerics=(
        "The mean of squares sums n = hidden_size positive terms. Its relative error is at most about u_acc "
        "(sqrt(n) + 8) (blocked summation). The root halves it, and three multiplications add u each. All "
        "terms have the sign and size of y, so S = |y|. The result may be rounded once (fp32 throughout), or "
        "twice (normalised value rounded before it is multiplied by the weight): two u_out."
    ),
    bytes_moved=bytes_moved,
    flops=flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 64, "hidden_size": 3584},
        {"batch": 2048, "hidden_size": 4096},
    ),
    row_axis="batch",
    reduced_axis="hidden_size",
    specials="nan_may_spread",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"weight": 1}, outputs={"y": 1}),
        Scaled(inputs={"x": 1}, scalars={"eps": 2}, outputs={"y": 0}),
        Additive(input="weight", outputs=("y",)),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
