"""RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight, per row.

Source of the definition: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4, with the
epsilon under the root as in Llama's published model code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from forge.domain.operation import Expectation, Operation
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec

if TYPE_CHECKING:
    import torch


def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """X [batch, hidden_size], weight [hidden_size] -> y [batch, hidden_size], computed in fp32."""
    h = x.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype)


def oracle(x: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[Expectation, ...]:
    """The same in fp64."""
    h = x.double()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.double()
    return (Expectation(value=y, scale=y.abs(), terms=x.shape[-1], roundings=2),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    rows, width = shape["batch"], shape["hidden_size"]
    return (2 * rows * width + width) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 4 * shape["batch"] * shape["hidden_size"]


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
        "The mean of squares sums n = hidden_size positive terms, so its relative error is at most about "
        "u_acc (sqrt(n) + 8) (blocked summation); the root halves it, and three multiplications add u each. "
        "All terms have the sign and size of y, so S = |y|. The result may be rounded once (fp32 throughout) "
        "or twice (normalised value rounded before it is multiplied by the weight): two u_out."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 64, "hidden_size": 3584},
        {"batch": 2048, "hidden_size": 4096},
    ),
    row_axis="batch",
    reduced_axis="hidden_size",
)
