"""RMSNorm of strided rows: y = q / sqrt(mean(q^2) + eps) * weight, per row, of the queries in a fused projection.

A fused projection leaves queries, keys and values one behind the other in each row. Models that normalise queries
read them there, with a row stride of three widths (Qwen3 and Gemma 3 normalise them so). Source of the definition:
Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import TensorSpec
from forge.operations import rmsnorm
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch


def rmsnorm_strided(qkv: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Qkv [batch, 3 hidden_size], weight [hidden_size] -> y [batch, hidden_size] of the first third, in fp32."""
    h = qkv[:, : weight.shape[0]].float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(qkv.dtype)


# Compute y [batch, hidden_size] in fp64, from qkv [batch, 3 hidden_size] and weight [hidden_size].
# The first third of each row of qkv is normalised. The error scale is |y|.
def oracle(qkv: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[Expectation, ...]:
    """The same in fp64."""
    h, w = qkv[:, : weight.shape[0]].double(), weight.double()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * w
    return (
        Expectation(
            value=y,
            scale=y.abs(),
            terms=h.shape[-1],
            roundings=2,
            on_integers="exact_sums",
            last_factor=w.abs().expand_as(y),
            drift=(drift_share(h.square()) / 2).expand_as(y),
        ),
    )


Norm = Callable[["torch.Tensor", "torch.Tensor", float], "torch.Tensor"]


def _of_queries(norm: Norm) -> Norm:
    """Return an RMSNorm of the queries alone."""
    return lambda qkv, weight, eps: norm(qkv[:, : weight.shape[0]], weight, eps)


def _elsewhere(taken: Callable[[torch.Tensor, int], torch.Tensor]) -> Norm:
    """Return the right formula for other elements of the projection."""
    return lambda qkv, weight, eps: rmsnorm.rmsnorm(taken(qkv, weight.shape[0]), weight, eps)


def _mean_of_all(qkv: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    h = qkv.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h[:, : weight.shape[0]] * scale * weight.float()).to(qkv.dtype)


MUTANTS = {
    "the keys": _elsewhere(lambda qkv, width: qkv[:, width : 2 * width]),
    "the values": _elsewhere(lambda qkv, width: qkv[:, 2 * width :]),
    "rows read as if they were dense": _elsewhere(
        lambda qkv, width: qkv.reshape(-1)[: qkv.shape[0] * width].view(-1, width)
    ),
    "every third element": _elsewhere(lambda qkv, _: qkv[:, ::3]),
    "the mean of the whole row": _mean_of_all,
    **{name: _of_queries(mutant) for name, mutant in rmsnorm.MUTANTS.items()},
}
VARIANTS = {name: _of_queries(variant) for name, variant in rmsnorm.VARIANTS.items()}


def vendor(qkv: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Compute y [batch, hidden_size] with torch.nn.functional.rms_norm, on the strided rows of qkv."""
    import torch

    return torch.nn.functional.rms_norm(qkv[:, : weight.shape[0]], (weight.shape[0],), weight, eps)


RMSNORM_STRIDED = Operation(
    name="rmsnorm_strided",
    summary="root-mean-square normalisation of the queries in a fused projection of queries, keys and values",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="qkv", axes=("batch", "hidden_size"), times={"hidden_size": 3}),
        TensorSpec(name="weight", axes=("hidden_size",)),
    ),
    scalars={"eps": 1e-6},
    outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="rmsnorm_strided(qkv, weight, eps) -> y",
    reference=rmsnorm_strided,
    oracle=oracle,
    numerics=(
        "The mean of squares sums n = hidden_size positive terms. Its relative error is at most about u_acc "
        "(sqrt(n) + 8) (blocked summation). The root halves it, and three multiplications add u each. All "
        "terms have the sign and size of y, so S = |y|. Keys and values aren't read. The result may be "
        "rounded once (fp32 throughout), or twice (normalised value rounded before it is multiplied by the "
        "weight): two u_out."
    ),
    bytes_moved=rmsnorm.bytes_moved,
    flops=rmsnorm.flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 512, "hidden_size": 128},
        {"batch": 2048, "hidden_size": 4096},
    ),
    reads_in_part=True,
    row_axis="batch",
    reduced_axis="hidden_size",
    specials="nan_may_spread",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"weight": 1}, outputs={"y": 1}),
        Scaled(inputs={"qkv": 1}, scalars={"eps": 2}, outputs={"y": 0}),
        Additive(input="weight", outputs=("y",)),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
