"""Grouped matrix product: consecutive rows belong to groups of uneven sizes, each with a matrix of its own.

These are the experts' dense layers of a mixture, after tokens are sorted by expert: Gale et al., "MegaBlocks" (2022),
section 4. Sizes are given by group and may be zero, as in jax.lax.ragged_dot. Rows beyond the last group give zeros.
Sums are in fp32 for every type of operands. The reference multiplies every row by every group's matrix and keeps one.
So the host needs no size, and a device never waits for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, Parts, TensorSpec
from forge.operations.matmul import in_blocks, without_the_rest
from forge.operations.operation import Expectation, Operation
from forge.operations.tensor_core_sums import product

if TYPE_CHECKING:
    import torch


def grouped_matmul(x: torch.Tensor, w: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """X [tokens, k], w [groups, k, n], sizes [groups] -> y [tokens, n]: rows times their group's matrix, in fp32."""
    import torch

    ends = sizes.cumsum(0)
    row = torch.arange(x.shape[0], device=x.device)
    h, y = x.float(), torch.zeros(x.shape[0], w.shape[2], device=x.device)
    for group in range(w.shape[0]):
        own = (row >= ends[group] - sizes[group]) & (row < ends[group])
        y = torch.where(own.unsqueeze(-1), h @ w[group].float(), y)
    return y.to(x.dtype)


# Compute y [tokens, n] in fp64: each row of x [tokens, k] times its group's matrix of w [groups, k, n].
# sizes [groups] are the numbers of rows. The error scale [tokens, n] is the sum of the products' magnitudes.
def oracle(x: torch.Tensor, w: torch.Tensor, sizes: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64; S is the sum of the products' sizes."""
    import torch

    value = torch.zeros(x.shape[0], w.shape[2], dtype=torch.float64, device=x.device)
    scale, lost = value.clone(), value.clone()
    for group, rows in _rows_of(sizes, x.shape[0]):
        value[rows], scale[rows], lost[rows] = product(x[rows], w[group])
    return (Expectation(value=value, scale=scale, terms=x.shape[-1], on_integers="exact_sums", drift=lost),)


def _rows_of(sizes: torch.Tensor, tokens: int) -> Iterator[tuple[int, slice]]:
    """Yield the groups that have rows, with their rows."""
    start = 0
    for group, size in enumerate(sizes.tolist()):
        if size > 0 and start < tokens:
            yield group, slice(start, min(start + size, tokens))
        start += size


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    """Return the least traffic in bytes. Only matrices of groups with rows are read."""
    tokens, k, n, groups = (shape[axis] for axis in ("tokens", "k", "n", "groups"))
    return (tokens * k + Parts.filled(groups, tokens) * k * n + tokens * n) * ITEMSIZE_BYTES[dtype] + groups * 4


def _flops(shape: Mapping[str, int]) -> int:
    return 2 * shape["tokens"] * shape["k"] * shape["n"]


Product = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
Grouped = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _product(h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return h @ w


def _by_group(
    product: Product = _product,
    matrix: Callable[[int, int], int] = lambda group, _: group,
    rows: Callable[[slice], slice] = lambda rows: rows,
) -> Grouped:
    """Return an operation, group by group in fp32, with another product of [rows, k] and [k, n], matrix or rows."""

    def function(x: torch.Tensor, w: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        y = x.new_zeros(x.shape[0], w.shape[2])
        for group, own in _rows_of(sizes, x.shape[0]):
            some = rows(own)
            y[some] = product(x[some].float(), w[matrix(group, w.shape[0])].float()).to(x.dtype)
        return y

    return function


def _sizes_changed(change: Callable[[torch.Tensor], torch.Tensor]) -> Grouped:
    return lambda x, w, sizes: _by_group()(x, w, change(sizes))


def _moved(sizes: torch.Tensor) -> torch.Tensor:
    """Return sizes with which each group but the last gives its last row to the next group."""
    given = (sizes[:-1] > 0).to(sizes.dtype)
    moved = sizes.clone()
    moved[:-1] -= given
    moved[1:] += given
    return moved


def _without_the_empty(x: torch.Tensor, w: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Skip empty groups when counting matrices."""
    filled = sizes[sizes > 0]
    return _by_group()(x, w[: filled.shape[0]], filled)


MUTANTS = {
    "the first group's matrix for all": _by_group(matrix=lambda *_: 0),
    "the next group's matrix": _by_group(matrix=lambda group, groups: (group + 1) % groups),
    "the last group's matrix first": _by_group(matrix=lambda group, groups: groups - 1 - group),
    "empty groups not counted": _without_the_empty,
    "groups of the same size": _sizes_changed(lambda sizes: sizes * 0 + -(-sizes.sum() // sizes.shape[0])),
    "sizes taken for ends": _sizes_changed(lambda sizes: sizes.diff(prepend=sizes[:1] * 0).clamp(min=0)),
    "sizes of the next group": _sizes_changed(lambda sizes: sizes.roll(1)),
    "each group's last row in the next": _sizes_changed(_moved),
    "each group's last row left out": _by_group(rows=lambda rows: slice(rows.start, rows.stop - 1)),
    "each group's first row left out": _by_group(rows=lambda rows: slice(rows.start + 1, rows.stop)),
    "groups of one row left out": _by_group(rows=lambda rows: slice(rows.start, max(rows.start, rows.stop - 1))),
    "the last term left out": _by_group(lambda h, w: h[:, :-1] @ w[:-1]),
    "the first term twice": _by_group(lambda h, w: h @ w + h[:, :1] @ w[:1]),
    "the rest beyond blocks of 64 left out": _by_group(without_the_rest),
    "terms of w reversed": _by_group(lambda h, w: h @ w.flip(0)),
    "terms of w off by one": _by_group(lambda h, w: h @ w.roll(1, 0)),
    "columns of w reversed": _by_group(lambda h, w: h @ w.flip(1)),
    "the first column for all": _by_group(lambda h, w: h @ w[:, :1].expand_as(w)),
    "w read as [n, k]": _by_group(lambda h, w: h @ w.reshape(w.shape[1], w.shape[0]).t()),
    "mean for sum": _by_group(lambda h, w: h @ w / h.shape[1]),
    "negative sums cut off": _by_group(lambda h, w: (h @ w).relu()),
}


VARIANTS = {
    "group after group": _by_group(),
    "terms in blocks": _by_group(in_blocks),
    "transposed": _by_group(lambda h, w: (w.t() @ h.t()).t()),
}


def vendor(x: torch.Tensor, w: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Compute y [tokens, n] with torch's grouped product on a GPU, where the sizes allow it; else group after group.

    The grouped product doesn't read the groups' sizes back to the host.
    """
    import torch

    if x.is_cuda and x.dtype == torch.bfloat16 and x.shape[1] % 8 == 0 and w.shape[2] % 8 == 0:
        return torch._grouped_mm(x, w, offs=sizes.cumsum(0).to(torch.int32))
    y, start = torch.zeros(x.shape[0], w.shape[2], dtype=x.dtype, device=x.device), 0
    if not x.is_cuda:
        for group, size in enumerate(sizes.tolist()):
            y[start : start + size] = x[start : start + size] @ w[group]
            start += size
        return y
    ends, row = sizes.cumsum(0), torch.arange(x.shape[0], device=x.device)
    for group in range(w.shape[0]):
        own = (row >= ends[group] - sizes[group]) & (row < ends[group])
        y = torch.where(own.unsqueeze(-1), x @ w[group], y)
    return y


GROUPED_MATMUL = Operation(
    name="grouped_matmul",
    summary="matrix products of consecutive rows in groups of uneven sizes, each group with its own matrix",
    axes=("tokens", "k", "n", "groups"),
    inputs=(
        TensorSpec(name="x", axes=("tokens", "k")),
        TensorSpec(name="w", axes=("groups", "k", "n")),
        TensorSpec(name="sizes", axes=("groups",), element="int32", values=Parts(axis="tokens")),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("tokens", "n")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="grouped_matmul(x, w, sizes) -> y",
    reference=grouped_matmul,
    oracle=oracle,
    numerics=(
        "Each element is a sum of k products, which may cancel. S is the sum of their sizes, |x| |w| with the "
        "matrix of the row's group. In fp32 products of 16-bit operands are exact, and those of fp32 operands "
        "err by u_acc. The sum errs by about u_acc (sqrt(k) + 8) S (blocked summation) and is rounded once: "
        "one u_out. Operands rounded to TF32's eleven bits err by 2^-11 S and are refused in fp32. Products "
        "of small integers with powers of two are exact in fp32, and so are their sums. Sizes add up to the "
        "rows; a group may have none."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 64, "k": 2048, "n": 1024, "groups": 8},
        {"tokens": 512, "k": 1024, "n": 2048, "groups": 8},
        {"tokens": 1000, "k": 1500, "n": 1001, "groups": 7},
        {"tokens": 4096, "k": 2048, "n": 768, "groups": 16},
    ),
    row_axis="tokens",
    reduced_axis="k",
    free_axes=("n", "groups"),
    specials="nan_may_spread",
    relations=(
        RowsIndependent(),
        Scaled(inputs={"x": 1}, outputs={"y": 1}),
        Scaled(inputs={"w": 1}, outputs={"y": 1}),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
