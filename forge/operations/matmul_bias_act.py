"""A dense layer with its bias and activation: y = silu(x w + b), the product accumulated in fp32.

The activation is SiLU: Elfwing, Uchibe and Doya, "Sigmoid-Weighted Linear Units for Neural Network Function
Approximation in Reinforcement Learning" (2017), z sigmoid(z). The operands don't show the activation, so it is fixed;
with GELU it would be another operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, TensorSpec
from forge.operations.matmul import in_blocks
from forge.operations.operation import Expectation, Operation
from forge.operations.tensor_core_sums import product

if TYPE_CHECKING:
    import torch

STEEPEST = 1.1
"""Upper bound of SiLU's slope, which is at most 1.0998, at z = 2.4."""
BESIDE_THE_SUM = 8.0
"""Constant added to sqrt(n) in the error bound, for the steps besides the sum, as in docs/numerics.md."""


def matmul_bias_act(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """X [m, k], w [k, n], b [n] -> y [m, n] = silu(x w + b), computed in fp32."""
    import torch

    return torch.nn.functional.silu(x.float() @ w.float() + b.float()).to(x.dtype)


# Compute y [m, n] = silu(x w + b) in fp64, from x [m, k], w [k, n] and b [n].
# The error scale [m, n] has three parts: the sum's error times silu's steepest slope, silu's own error, and one
# rounding of the sum to the operands' dtype.
def oracle(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    import torch

    (summed, sizes, lost), bias = product(x, w), b.double()
    z = summed + bias
    terms = x.shape[-1] + 1
    gate = z.sigmoid()
    y = torch.nn.functional.silu(z)
    rounded_once = z * gate * (1 + z * (1 - gate))
    coarser = torch.finfo(x.dtype).eps / 2 / UNIT_ROUNDOFF["fp32"] / (math.sqrt(terms) + BESIDE_THE_SUM)
    size = STEEPEST * (sizes + bias.abs()) + y.abs() * (1 + (-z).clamp(min=0.0) / 4) + coarser * rounded_once.abs()
    drift = (lost * STEEPEST * sizes / size).nan_to_num(nan=0.0, posinf=0.0)
    return (Expectation(value=y, scale=size, terms=terms, on_integers="exact_sums", drift=drift),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    m, k, n = shape["m"], shape["k"], shape["n"]
    return (m * k + k * n + n + m * n) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 2 * shape["m"] * shape["k"] * shape["n"] + 6 * shape["m"] * shape["n"]


Layer = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _computed(change: Layer) -> Layer:
    """Return an operation with a formula in fp32, its result in the operands' dtype."""
    return lambda x, w, b: change(x.float(), w.float(), b.float()).to(x.dtype)


def _silu(z: torch.Tensor) -> torch.Tensor:
    return z * z.sigmoid()


def _gelu(z: torch.Tensor) -> torch.Tensor:
    return 0.5 * z * (1 + (z * math.sqrt(0.5)).erf())


MUTANTS = {
    "bias ignored": _computed(lambda h, w, _: _silu(h @ w)),
    "bias after the activation": _computed(lambda h, w, b: _silu(h @ w) + b),
    "bias twice": _computed(lambda h, w, b: _silu(h @ w + 2 * b)),
    "the next column's bias": _computed(lambda h, w, b: _silu(h @ w + b.roll(1))),
    "one bias for all columns": _computed(lambda h, w, b: _silu(h @ w + b[:1])),
    "bias subtracted": _computed(lambda h, w, b: _silu(h @ w - b)),
    "no activation": _computed(lambda h, w, b: h @ w + b),
    "gelu": _computed(lambda h, w, b: _gelu(h @ w + b)),
    "relu": _computed(lambda h, w, b: (h @ w + b).relu()),
    "sigmoid alone": _computed(lambda h, w, b: (h @ w + b).sigmoid()),
    "steeper": _computed(lambda h, w, b: (h @ w + b) * (1.702 * (h @ w + b)).sigmoid()),
    "activated before it is summed": _computed(lambda h, w, b: _silu(h) @ w + b),
    "activated twice": _computed(lambda h, w, b: _silu(_silu(h @ w + b))),
    "the last term left out": _computed(lambda h, w, b: _silu(h[:, :-1] @ w[:-1] + b)),
    "the first term twice": _computed(lambda h, w, b: _silu(h @ w + h[:, :1] @ w[:1] + b)),
    "terms of w reversed": _computed(lambda h, w, b: _silu(h @ w.flip(0) + b)),
    "columns of w reversed": _computed(lambda h, w, b: _silu(h @ w.flip(1) + b)),
    "the first row for all": _computed(lambda h, w, b: _silu(h[:1].expand_as(h) @ w + b)),
    "w read as [n, k]": _computed(lambda h, w, b: _silu(h @ w.reshape(w.shape[1], w.shape[0]).t() + b)),
}


def _in_blocks(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Start with the bias, then add blocks of terms one after the other."""
    z = in_blocks(h, w, b.expand(h.shape[0], -1))
    return z / (1 + (-z).exp())


def _rounded_between(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Round the sum to the operands' type before the activation, as two operators do, if it is in range."""
    import torch

    z = x.float() @ w.float() + b.float()
    rounded = z.to(x.dtype).float()
    return _silu(torch.where(rounded.isinf(), z, rounded)).to(x.dtype)


VARIANTS = {"bias first, terms in blocks": _computed(_in_blocks), "rounded before the activation": _rounded_between}


def vendor(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute y [m, n] with torch.addmm in the operands' dtype (cuBLAS on an NVIDIA GPU), then torch's silu."""
    import torch

    return torch.nn.functional.silu(torch.addmm(b, x, w))


MATMUL_BIAS_ACT = Operation(
    name="matmul_bias_act",
    summary="matrix product plus bias, through SiLU",
    axes=("m", "k", "n"),
    inputs=(
        TensorSpec(name="x", axes=("m", "k")),
        TensorSpec(name="w", axes=("k", "n")),
        TensorSpec(name="b", axes=("n",)),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("m", "n")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="matmul_bias_act(x, w, b) -> y",
    reference=matmul_bias_act,
    oracle=oracle,
    numerics=(
        "z = x w + b sums n = k + 1 terms of together |x| |w| + |b| = S_z, in fp32. It errs by about u_acc "
        "(sqrt(n) + 8) S_z. SiLU is nowhere steeper than 1.1, so it makes at most 1.1 times as much of that. "
        "Its own exponential errs by about u_acc max(0, -z) relative to itself. z may be rounded to the "
        "output's type first, as where product and activation are two operators. That moves y by u_out |z "
        "silu'(z)|, which the bound has room for twice at the policy's c = 2. So S = 1.1 S_z + |y| (1 + "
        "max(0, -z) / 4) + |z silu'(z)| (u_out / u_acc) / (sqrt(n) + 8). The result is rounded once: one "
        "u_out. The product without its bias may not be rounded: they can cancel. Nor may a sum overflow to "
        "-infinity on the way, since silu(-infinity) is NaN. So two operators in turn fail on large values in "
        "fp16."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"m": 1, "k": 4096, "n": 4096},
        {"m": 16, "k": 4096, "n": 1024},
        {"m": 64, "k": 3584, "n": 3584},
        {"m": 100, "k": 1500, "n": 1001},
        {"m": 2048, "k": 4096, "n": 4096},
        {"m": 4096, "k": 2048, "n": 1024},
    ),
    row_axis="m",
    reduced_axis="k",
    free_axes=("n",),
    specials="nan_may_spread",
    relations=(RowsIndependent(), RowsPermuted()),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
