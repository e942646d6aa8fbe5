"""Dequantisation of int4 weights in groups of 128: y = (q - zero) * scale, two numbers in each byte.

Group-wise asymmetric quantisation as in GPTQ (Frantar et al. 2022) and AWQ (Lin et al. 2023), with zero points and
scales in the weights' type. A byte holds an even column in its low half, and the next odd column in its high half. A
row's last group may be smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, AnyByte, AsKind, DType, TensorSpec, Whole
from forge.operations.operation import Expectation, Operation

if TYPE_CHECKING:
    import torch

GROUP_PAIRS = 64
"""Number of bytes of a group: 128 numbers, two in each byte."""


def dequant_int4(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """Packed [batch, pairs] in uint8, scale, zero [batch, pairs / 64] -> y [batch, 2 pairs] in the scale's type."""
    import torch

    q = torch.stack((packed & 15, packed >> 4), -1).flatten(1).float()
    s, z = (one.float().repeat_interleave(128, -1)[:, : q.shape[1]] for one in (scale, zero))
    return ((q - z) * s).to(scale.dtype)


# Compute y [batch, 2 pairs] = (q - zero) * scale in fp64, from packed [batch, pairs], scale and zero.
# scale and zero [batch, pairs / 64] belong to 64 pairs each. The error scale, shaped like y, is (q + |zero|) *
# |scale|.
def oracle(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    q, s, z = _unpacked(packed, scale.double(), zero.double())
    return (Expectation(value=(q - z) * s, scale=(q + z.abs()) * s.abs(), terms=1),)


Unpacked = tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]


def _unpacked(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> Unpacked:
    """Return numbers, scales and zero points, each [batch, 2 pairs] in the scale's type."""
    import torch

    q = torch.stack((packed & 15, packed >> 4), -1).flatten(1).to(scale.dtype)
    s, z = (one.repeat_interleave(2 * GROUP_PAIRS, -1)[:, : q.shape[1]] for one in (scale, zero))
    return q, s, z


def _groups(shape: Mapping[str, int]) -> int:
    return shape["batch"] * -(-shape["pairs"] // GROUP_PAIRS)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    itemsize_bytes = ITEMSIZE_BYTES[dtype]
    return shape["batch"] * shape["pairs"] * (1 + 2 * itemsize_bytes) + 2 * _groups(shape) * itemsize_bytes


def _flops(shape: Mapping[str, int]) -> int:
    return 4 * shape["batch"] * shape["pairs"]


Formula = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _formula(change: Formula) -> Formula:
    """Return an operation with another formula of numbers, scales and zero points in fp32, in the scale's type."""
    return lambda packed, scale, zero: change(*_unpacked(packed, scale.float(), zero.float())).to(scale.dtype)


def _high_half_first(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    return dequant_int4(packed << 4 | packed >> 4, scale, zero)


def _halves_apart(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """Put all low halves of a row first, then all high ones."""
    import torch

    q = torch.cat((packed & 15, packed >> 4), -1)
    return dequant_int4(q[:, ::2] | q[:, 1::2] << 4, scale, zero)


MUTANTS = {
    "zero point ignored": _formula(lambda q, s, _: q * s),
    "zero point fixed at 8": _formula(lambda q, s, _: (q - 8) * s),
    "zero point added": _formula(lambda q, s, z: (q + z) * s),
    "zero point after the scale": _formula(lambda q, s, z: q * s - z),
    "zero points off by one": _formula(lambda q, s, z: (q - z - 1) * s),
    "scale ignored": _formula(lambda q, _, z: q - z),
    "read as signed": _formula(lambda q, s, z: ((q + 8).remainder(16) - 8 - z) * s),
    "the first group's scale": _formula(lambda q, s, z: (q - z) * s[:, :1]),
    "the first group's zero point": _formula(lambda q, s, z: (q - z[:, :1]) * s),
    "one row's scales for all": _formula(lambda q, s, z: (q - z) * s[:1]),
    "high half first": _high_half_first,
    "halves apart": _halves_apart,
}


def _in_its_own_type(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    q, s, z = _unpacked(packed, scale, zero)
    return (q - z) * s


VARIANTS = {
    "scaled before the difference": _formula(lambda q, s, z: q * s - z * s),
    "in the scale's own type": _in_its_own_type,
}


DEQUANT_INT4 = Operation(
    name="dequant_int4",
    summary="int4 weights, two in a byte, with a scale and a zero point for each group of 128",
    axes=("batch", "pairs"),
    inputs=(
        TensorSpec(name="packed", axes=("batch", "pairs"), element="uint8", values=AnyByte()),
        TensorSpec(name="scale", axes=("batch", "pairs"), per={"pairs": GROUP_PAIRS}, values=AsKind(exponent=-4)),
        TensorSpec(name="zero", axes=("batch", "pairs"), per={"pairs": GROUP_PAIRS}, values=Whole(below=16)),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("batch", "pairs"), times={"pairs": 2}),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="dequant_int4(packed, scale, zero) -> y",
    reference=dequant_int4,
    oracle=oracle,
    numerics=(
        "A difference of two whole numbers below 16, exact in every type here, and one product: n = 1. The "
        "difference may be taken before or after the product, so that S = (q + |zero|) |scale|; it is kept in "
        "fp32 then. The result is rounded to the scale's type once."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 16, "pairs": 2048},
        {"batch": 1024, "pairs": 2048},
        {"batch": 4096, "pairs": 2048},
        {"batch": 3584, "pairs": 9472},
    ),
    row_axis="batch",
    reduced_axis="pairs",
    specials="unspecified",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"scale": 1}, outputs={"y": 1}),
        Additive(input="scale", outputs=("y",)),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
)
