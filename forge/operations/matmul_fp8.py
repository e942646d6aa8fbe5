"""Matrix product of fp8 activations and weights with a scale for each row of both: y = (x w^T) x_scale w_scale.

It is the dense layer of a model that is served in fp8: m tokens, k features in, n features out. Weights are stored
[n, k], as tensor cores for fp8 read them (NVIDIA, PTX ISA, wgmma: both operands are K-major). A scale for each token
and one for each output channel are as in vLLM (cutlass_scaled_mm) and in `torch._scaled_mm` with row-wise scaling.
Sums are in fp32, and the result is bf16, the only type that the latter gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import Between, DType, TensorSpec
from forge.operations.matmul import in_blocks
from forge.operations.operation import Expectation, Operation
from forge.operations.tensor_core_sums import cut_off_of_fp8

if TYPE_CHECKING:
    import torch

SCALES = Between(low=2.0**-12, high=2.0**-4, by="ratio", default=None)
"""Values of the scales: what a largest value of 0.1 to 28 gives, divided by 448, the largest number of e4m3."""


def matmul_fp8(x: torch.Tensor, w: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor) -> torch.Tensor:
    """X [m, k], w [n, k] in fp8 e4m3, x_scale [m], w_scale [n] in fp32 -> y [m, n] in bf16, computed in fp32."""
    import torch

    return ((x.float() @ w.float().t()) * x_scale.unsqueeze(-1) * w_scale).to(torch.bfloat16)


# Compute y [m, n] in fp64: x [m, k] times w [n, k] transposed, times x_scale [m] and w_scale [n].
# The error scale [m, n] is the sum of the products' magnitudes, times both scales.
def oracle(x: torch.Tensor, w: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64; S is the sum of the products' sizes, times both scales."""
    h, weights, factor = x.double(), w.double().t(), x_scale.double().unsqueeze(-1) * w_scale.double()
    value, scale = (h @ weights) * factor, (h.abs() @ weights.abs()) * factor.abs()
    lost = (cut_off_of_fp8(h, weights) * factor.abs() / scale).nan_to_num(nan=0.0, posinf=0.0)
    return (Expectation(value=value, scale=scale, terms=x.shape[-1], drift=lost),)


def _bytes_moved(shape: Mapping[str, int], _: DType) -> int:
    m, k, n = shape["m"], shape["k"], shape["n"]
    return m * k + n * k + 2 * m * n + 4 * (m + n)


def _flops(shape: Mapping[str, int]) -> int:
    return 2 * shape["m"] * shape["k"] * shape["n"]


Product = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _computed(change: Product) -> Product:
    """Return an operation with a formula in fp32 of x [m, k], w [k, n] and scales [m, 1] and [n], rounded to bf16."""

    def operation(x: torch.Tensor, w: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor) -> torch.Tensor:
        return change(x.float(), w.float().t(), x_scale.unsqueeze(-1), w_scale).bfloat16()

    return operation


def _without_the_rest(h: torch.Tensor, w: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    whole = h.shape[1] // 64 * 64
    return h[:, :whole] @ w[:whole] * s * t


def _bf16_sums(h: torch.Tensor, w: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """Round the sum after each block of 32 terms to bf16."""
    total = h.new_zeros(h.shape[0], w.shape[1])
    for start in range(0, h.shape[1], 32):
        total = (total + h[:, start : start + 32] @ w[start : start + 32]).bfloat16().float()
    return total * s * t


MUTANTS = {
    "the scales of rows ignored": _computed(lambda h, w, _, t: h @ w * t),
    "the scales of columns ignored": _computed(lambda h, w, s, _: h @ w * s),
    "the first row's scale for all": _computed(lambda h, w, s, t: h @ w * s[:1] * t),
    "the first column's scale for all": _computed(lambda h, w, s, t: h @ w * s * t[:1]),
    "the next row's scale": _computed(lambda h, w, s, t: h @ w * s.roll(1, 0) * t),
    "the next column's scale": _computed(lambda h, w, s, t: h @ w * s * t.roll(1, 0)),
    "a scale's reciprocal": _computed(lambda h, w, s, t: h @ w * s / t),
    "the sum of both scales": _computed(lambda h, w, s, t: h @ w * (s + t)),
    "the last term left out": _computed(lambda h, w, s, t: h[:, :-1] @ w[:-1] * s * t),
    "the rest beyond blocks of 64 left out": _computed(_without_the_rest),
    "terms of w reversed": _computed(lambda h, w, s, t: h @ w.flip(0) * s * t),
    "columns of w reversed": _computed(lambda h, w, s, t: h @ w.flip(1) * s * t),
    "w read as [k, n]": _computed(lambda h, w, s, t: h @ w.t().reshape(w.shape) * s * t),
    "the first row for all": _computed(lambda h, w, s, t: h[:1].expand_as(h) @ w * s * t),
    "magnitudes": _computed(lambda h, w, s, t: h.abs() @ w.abs() * s * t),
    "negative sums cut off": _computed(lambda h, w, s, t: (h @ w).relu() * s * t),
    "partial sums in bf16": _computed(_bf16_sums),
    "products held at 448": _computed(lambda h, w, s, t: (h @ w).clamp(-448, 448) * s * t),
}


VARIANTS = {
    "terms in blocks, scales together": _computed(lambda h, w, s, t: in_blocks(h, w) * (s * t)),
    "columns' scales first": _computed(lambda h, w, s, t: h @ w * t * s),
    "transposed": _computed(lambda h, w, s, t: ((w.t() @ h.t()).t() * s * t).contiguous()),
}


def vendor(x: torch.Tensor, w: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor) -> torch.Tensor:
    """Compute y [m, n] with torch's product with row-wise scales (cuBLAS or CUTLASS), where its sizes allow it.

    Elsewhere, as on a CPU, compute it in fp32.
    """
    import torch

    if not x.is_cuda or not x.shape[0] or x.shape[1] % 16 or w.shape[0] % 16:
        return ((x.float() @ w.float().t()) * x_scale.unsqueeze(-1) * w_scale).to(torch.bfloat16)
    return torch._scaled_mm(
        *(x, w.t(), x_scale.unsqueeze(-1), w_scale.unsqueeze(0)), out_dtype=torch.bfloat16, use_fast_accum=False
    )


MATMUL_FP8 = Operation(
    name="matmul_fp8",
    summary="matrix product of fp8 activations and weights, with a scale for each row of both",
    axes=("m", "k", "n"),
    inputs=(
        TensorSpec(name="x", axes=("m", "k"), element="fp8_e4m3"),
        TensorSpec(name="w", axes=("n", "k"), element="fp8_e4m3"),
        TensorSpec(name="x_scale", axes=("m",), element="fp32", values=SCALES),
        TensorSpec(name="w_scale", axes=("n",), element="fp32", values=SCALES),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("m", "n")),),
    dtypes=("bf16",),
    signature="matmul_fp8(x, w, x_scale, w_scale) -> y",
    reference=matmul_fp8,
    oracle=oracle,
    numerics=(
        "Each element is a sum of k products, which may cancel: S is the sum of their sizes, |x| |w|, times "
        "both scales. Products of fp8 numbers are exact in fp32. The sum errs by about u_acc (sqrt(k) + 8) S "
        "(blocked summation), the scales by two u_acc of |y|. The result is rounded once: one u_out. Tensor "
        "cores of sm_90 cut off, in each sum of 32 products, what lies 13 bits below the largest number's first. "
        "So a kernel adds their sums of some 128 terms in fp32, as cuBLAS does without fast accumulation "
        "(DeepSeek-V3's report, 2024, section 3.5.2). What such a kernel loses is allowed: 33 steps in each sum of "
        "32, the squares of all added up. "
        "Partial sums in bf16 are refused."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"m": 1, "k": 4096, "n": 4096},
        {"m": 16, "k": 4096, "n": 4096},
        {"m": 64, "k": 3584, "n": 3584},
        {"m": 100, "k": 1504, "n": 1008},
        {"m": 2048, "k": 4096, "n": 4096},
        {"m": 4096, "k": 4096, "n": 14336},
    ),
    row_axis="m",
    reduced_axis="k",
    free_axes=("n",),
    specials="nan_may_spread",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"x_scale": 1}, outputs={"y": 1}),
        Scaled(inputs={"w_scale": 1}, outputs={"y": 1}),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
