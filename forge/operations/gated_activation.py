"""What gated activations share: y = f(gate) * up, element by element, in the operands' own type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Operation

if TYPE_CHECKING:
    import torch

Pair = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def computed(change: Pair) -> Pair:
    """Return an operation with a formula in fp32, its result in the operands' dtype."""
    return lambda gate, up: change(gate.float(), up.float()).to(gate.dtype)


def rounded_between(activation: Callable[[torch.Tensor], torch.Tensor]) -> Pair:
    """Round the activation to the operands' dtype before the product, as a chain of two operators does."""
    return lambda gate, up: (activation(gate.float()).to(gate.dtype).float() * up.float()).to(gate.dtype)


def gated_activation(
    name: str,
    *,
    summary: str,
    reference: Pair,
    oracle: Callable[..., tuple[Expectation, ...]],
    numerics: str,
    flops_each: int,
    served_width: int,
    mutants: Mapping[str, Pair],
    variants: Mapping[str, Pair],
) -> Operation:
    """Return the operation with what is its own.

    `flops_each` is the number of operations for one element, and `served_width` the hidden size of a model with it.
    """
    return Operation(
        name=name,
        summary=summary,
        axes=("batch", "hidden_size"),
        inputs=(
            TensorSpec(name="gate", axes=("batch", "hidden_size")),
            TensorSpec(name="up", axes=("batch", "hidden_size")),
        ),
        scalars={},
        outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
        dtypes=("fp32", "fp16", "bf16"),
        signature=f"{name}(gate, up) -> y",
        reference=reference,
        oracle=oracle,
        numerics=numerics,
        bytes_moved=_bytes_moved,
        flops=lambda shape: flops_each * shape["batch"] * shape["hidden_size"],
        workloads=(
            {"batch": 1, "hidden_size": 14336},
            {"batch": 16, "hidden_size": 4096},
            {"batch": 16, "hidden_size": 14336},
            {"batch": 64, "hidden_size": served_width},
            {"batch": 100, "hidden_size": 1407},
            {"batch": 4096, "hidden_size": 4096},
        ),
        row_axis="batch",
        reduced_axis="hidden_size",
        specials="as_reference",
        relations=(
            RowsIndependent(),
            RowsPermuted(),
            Scaled(inputs={"up": 1}, outputs={"y": 1}),
            Additive(input="up", outputs=("y",)),
        ),
        mutants=mutants,
        variants=variants,
    )


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return 3 * shape["batch"] * shape["hidden_size"] * ITEMSIZE_BYTES[dtype]
