"""Residual add followed by RMSNorm, in one operation: h = x + residual; y = rmsnorm(h); h is returned as well.

Every transformer block has this pair; vLLM and FlashInfer name it fused_add_rmsnorm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations import rmsnorm
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch


def fused_add_rmsnorm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


# Compute y and new_residual [batch, hidden_size] in fp64, from x, residual and weight [hidden_size].
# The error scales are |y| and |new_residual|.
def oracle(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[Expectation, ...]:
    """The same in fp64."""
    h, w = x.double() + residual.double(), weight.double()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * w
    return (
        Expectation(
            value=y,
            scale=y.abs(),
            terms=x.shape[-1],
            roundings=4,
            on_integers="exact_sums",
            last_factor=w.abs().expand_as(y),
            drift=(drift_share(h.square()) / 2).expand_as(y),
        ),
        Expectation(value=h, scale=h.abs(), terms=1, on_integers="exact"),
    )


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    rows, width = shape["batch"], shape["hidden_size"]
    return (4 * rows * width + width) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 5 * shape["batch"] * shape["hidden_size"]


Normalised = Callable[["torch.Tensor", "torch.Tensor", float], "torch.Tensor"]
Pair = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", float], "tuple[torch.Tensor, torch.Tensor]"]


def _of_the_sum(normalise: Normalised) -> Pair:
    """Return an operation that applies a norm to x + residual, kept in fp32 in between."""

    def both(
        x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        h = x.float() + residual.float()
        return normalise(h, weight.float(), eps).to(x.dtype), h.to(x.dtype)

    return both


def _residual_left_out(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The norm of x alone, with the right new residual."""
    return rmsnorm.rmsnorm(x, weight, eps), (x.float() + residual.float()).to(x.dtype)


def _residual_passed_on(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The right norm, with the old residual."""
    return fused_add_rmsnorm(x, residual, weight, eps)[0], residual


MUTANTS = {
    **{name: _of_the_sum(change) for name, change in rmsnorm.MUTANTS.items()},
    "residual left out of the norm": _residual_left_out,
    "residual passed on unchanged": _residual_passed_on,
}
VARIANTS = {name: _of_the_sum(variant) for name, variant in rmsnorm.VARIANTS.items()}


FUSED_ADD_RMSNORM = Operation(
    name="fused_add_rmsnorm",
    summary="residual add and RMSNorm in one pass; returns the normalised rows and the new residual",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="x", axes=("batch", "hidden_size")),
        TensorSpec(name="residual", axes=("batch", "hidden_size")),
        TensorSpec(name="weight", axes=("hidden_size",)),
    ),
    scalars={"eps": 1e-6},
    outputs=(
        TensorSpec(name="y", axes=("batch", "hidden_size")),
        TensorSpec(name="new_residual", axes=("batch", "hidden_size")),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="fused_add_rmsnorm(x, residual, weight, eps) -> (y, new_residual)",
    reference=fused_add_rmsnorm,
    oracle=oracle,
    numerics=(
        "new_residual is one correctly rounded addition: its error is at most u_out |h|. y sums n = "
        "hidden_size positive squares. That is an error of at most about u_acc (sqrt(n) + 8) (blocked "
        "summation) relative to y, so S = |y|. y may be computed from h before or after its rounding to the "
        "output's dtype. That moves y by up to two u_out (one with the element, one with the mean). y may be "
        "rounded once, or twice (normalised value rounded before it is multiplied by the weight): four u_out "
        "in all. The mean and the root stay in fp32: rounding the root to a smaller type leaves the others no "
        "room."
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
    specials="nan_may_spread",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"weight": 1}, outputs={"y": 1, "new_residual": 0}),
        Scaled(inputs={"x": 1, "residual": 1}, scalars={"eps": 2}, outputs={"y": 0, "new_residual": 1}),
        Additive(input="weight", outputs=("y",)),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
)
