"""Dequantisation of int8 weights with one scale per row: y = x * scale.

Per-channel symmetric quantisation as in LLM.int8() (Dettmers et al. 2022) and SmoothQuant (Xiao et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, AnyByte, AsKind, DType, TensorSpec
from forge.operations.operation import Expectation, Operation

if TYPE_CHECKING:
    import torch


def dequant_int8(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """X [batch, hidden_size] in int8, scale [batch] -> y [batch, hidden_size] in the scale's type."""
    return (x.float() * scale.float().unsqueeze(-1)).to(scale.dtype)


# Compute y [batch, hidden_size] = x * scale in fp64, from x like y and scale [batch]; the error scale is |y|.
def oracle(x: torch.Tensor, scale: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    y = x.double() * scale.double().unsqueeze(-1)
    return (Expectation(value=y, scale=y.abs(), terms=1),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    rows, width = shape["batch"], shape["hidden_size"]
    return rows * width * (1 + ITEMSIZE_BYTES[dtype]) + rows * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return shape["batch"] * shape["hidden_size"]


Product = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _mutant(change: Product) -> Product:
    """Return an operation with a wrong formula in fp32, scales as [batch, 1], result in the scale's type."""
    return lambda x, scale: change(x.float(), scale.float().unsqueeze(-1)).to(scale.dtype)


MUTANTS = {
    "scale ignored": _mutant(lambda q, _: q),
    "one scale for all rows": _mutant(lambda q, s: q * s[:1]),
    "the next row's scale": _mutant(lambda q, s: q * s.roll(1, 0)),
    "scale's reciprocal": _mutant(lambda q, s: q / s),
    "read as unsigned": _mutant(lambda q, s: q.remainder(256) * s),
    "-128 is -127": _mutant(lambda q, s: q.clamp(min=-127) * s),
    "quanta of 1/127": _mutant(lambda q, s: q * s / 127),
    "the sign lost": _mutant(lambda q, s: q.abs() * s),
    "columns reversed": _mutant(lambda q, s: q.flip(-1) * s),
    "one more": _mutant(lambda q, s: (q + 1) * s),
    "the scale's magnitude": _mutant(lambda q, s: q * s.abs()),
}


VARIANTS = {
    "in the scale's own type": lambda x, scale: x.to(scale.dtype) * scale.unsqueeze(-1),
    "in fp64": lambda x, scale: (x.double() * scale.double().unsqueeze(-1)).to(scale.dtype),
}


DEQUANT_INT8 = Operation(
    name="dequant_int8",
    summary="int8 weights times one scale for each row",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="x", axes=("batch", "hidden_size"), element="int8", values=AnyByte()),
        TensorSpec(name="scale", axes=("batch",), values=AsKind(exponent=-7)),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="dequant_int8(x, scale) -> y",
    reference=dequant_int8,
    oracle=oracle,
    numerics=(
        "One product, rounded once to the scale's type: int8 is exact in every type here. Nothing is summed: n = "
        "1, S = |y|."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 4096, "hidden_size": 4096},
        {"batch": 3584, "hidden_size": 18944},
    ),
    row_axis="batch",
    reduced_axis="hidden_size",
    specials="as_reference",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"scale": 1}, outputs={"y": 1}),
        Additive(input="scale", outputs=("y",)),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
)
