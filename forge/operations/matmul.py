"""Matrix product of activations and weights: y = x w, accumulated in fp32.

It is the dense layer of a transformer: m tokens, k features in, n features out, weights stored [k, n]. Sums are in
fp32 for every type of operands, as in cuBLAS's CUBLAS_COMPUTE_32F (NVIDIA, cuBLAS documentation, "cublasGemmEx").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Operation
from forge.operations.tensor_core_sums import product

if TYPE_CHECKING:
    import torch

BLOCK = 48
"""Number of terms that a variant adds in one block. It divides no usual size, so the last block is partial."""


def matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """X [m, k], w [k, n] -> y [m, n], computed in fp32."""
    return (x.float() @ w.float()).to(x.dtype)


# Compute y [m, n] = x w in fp64, from x [m, k] and w [k, n]; the error scale [m, n] is |x| |w|.
def oracle(x: torch.Tensor, w: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64; S is the sum of the products' sizes."""
    value, scale, lost = product(x, w)
    return (Expectation(value=value, scale=scale, terms=x.shape[-1], on_integers="exact_sums", drift=lost),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    m, k, n = shape["m"], shape["k"], shape["n"]
    return (m * k + k * n + m * n) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 2 * shape["m"] * shape["k"] * shape["n"]


Product = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _computed(change: Product) -> Product:
    """Return an operation with a formula in fp32, its result in the operands' dtype."""
    return lambda x, w: change(x.float(), w.float()).to(x.dtype)


def without_the_rest(h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Leave out the terms behind the last whole block of 64."""
    whole = h.shape[1] // 64 * 64
    return h[:, :whole] @ w[:whole]


MUTANTS = {
    "the last term left out": _computed(lambda h, w: h[:, :-1] @ w[:-1]),
    "the first term twice": _computed(lambda h, w: h @ w + h[:, :1] @ w[:1]),
    "the rest beyond blocks of 64 left out": _computed(without_the_rest),
    "the first half of the terms": _computed(lambda h, w: h[:, : h.shape[1] // 2] @ w[: h.shape[1] // 2]),
    "terms of w reversed": _computed(lambda h, w: h @ w.flip(0)),
    "terms of w off by one": _computed(lambda h, w: h @ w.roll(1, 0)),
    "columns of w reversed": _computed(lambda h, w: h @ w.flip(1)),
    "the first column for all": _computed(lambda h, w: h @ w[:, :1].expand_as(w)),
    "the first row for all": _computed(lambda h, w: h[:1].expand_as(h) @ w),
    "w read as [n, k]": _computed(lambda h, w: h @ w.reshape(w.shape[1], w.shape[0]).t()),
    "magnitudes": _computed(lambda h, w: h.abs() @ w.abs()),
    "mean for sum": _computed(lambda h, w: h @ w / h.shape[1]),
    "negative sums cut off": _computed(lambda h, w: (h @ w).relu()),
    "one more": _computed(lambda h, w: h @ w + 1),
    "the second half not summed past the first column": _computed(
        lambda h, w: h @ w - (h[:, h.shape[1] // 2 :] @ w[h.shape[1] // 2 :]).index_fill(1, _first(h), 0.0)
    ),
}


def _first(h: torch.Tensor) -> torch.Tensor:
    return h.new_zeros(1).long()


def in_blocks(h: torch.Tensor, w: torch.Tensor, first: torch.Tensor | None = None) -> torch.Tensor:
    """Add blocks of terms one after the other, to `first` [m, n] if it is given."""
    total = h.new_zeros(h.shape[0], w.shape[1]) if first is None else first
    for start in range(0, h.shape[1], BLOCK):
        total = total + h[:, start : start + BLOCK] @ w[start : start + BLOCK]
    return total


def _split(h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Add interleaved terms in eight sums, then these, as split-k does."""
    parts = [h[:, part::8] @ w[part::8] for part in range(8)]
    return sum(parts[1:], parts[0])


VARIANTS = {
    "terms in blocks": _computed(in_blocks),
    "terms in eight parts": _computed(_split),
    "transposed": _computed(lambda h, w: (w.t() @ h.t()).t().contiguous()),
}


def vendor(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Compute y [m, n] = x w with torch.matmul in the operands' dtype: cuBLAS on an NVIDIA GPU."""
    import torch

    return torch.matmul(x, w)


MATMUL = Operation(
    name="matmul",
    summary="matrix product of activations and weights",
    axes=("m", "k", "n"),
    inputs=(TensorSpec(name="x", axes=("m", "k")), TensorSpec(name="w", axes=("k", "n"))),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("m", "n")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="matmul(x, w) -> y",
    reference=matmul,
    oracle=oracle,
    numerics=(
        "Each element is a sum of k products, which may cancel: S is the sum of their sizes, |x| |w|. In fp32 "
        "products of 16-bit operands are exact, and those of fp32 operands err by u_acc. The sum errs by "
        "about u_acc (sqrt(k) + 8) S (blocked summation) and is rounded once: one u_out. Operands rounded to "
        "TF32's eleven bits err by 2^-11 S and are refused in fp32. Partial sums rounded to a 16-bit type err "
        "by u_out of their own size, which is more than u_out |y| where they cancel. Products of small "
        "integers with powers of two are exact in fp32, and so are their sums."
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
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"x": 1}, outputs={"y": 1}),
        Scaled(inputs={"w": 1}, outputs={"y": 1}),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
