"""Gated SiLU: y = gate * sigmoid(gate) * up, element by element: the activation between the projections of an MLP.

Source of the definition: Shazeer, "GLU Variants Improve Transformer" (2020), SwiGLU in equation 5. vLLM and
FlashInfer name it silu_and_mul, with gate and up in one tensor; here they are two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Operation

if TYPE_CHECKING:
    import torch

UNDERFLOW = 2.0**-106
"""Factor of (1 + |gate|) (1 + |up|) in S. Times the bound's c u_acc 9, it is 1.1 times the smallest normal fp32."""


def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Gate, up [batch, hidden_size] -> y [batch, hidden_size], computed in fp32."""
    import torch

    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)


def oracle(gate: torch.Tensor, up: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    import torch

    g, u = gate.double(), up.double()
    y = torch.nn.functional.silu(g) * u
    size = y.abs() * (1 + (-g).clamp(min=0.0) / 4) + UNDERFLOW * (1 + g.abs()) * (1 + u.abs())
    return (Expectation(value=y, scale=size, terms=1, roundings=2, last_factor=u.abs()),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return 3 * shape["batch"] * shape["hidden_size"] * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 5 * shape["batch"] * shape["hidden_size"]


Pair = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _computed(change: Pair) -> Pair:
    """Return an operation with a formula in fp32, its result in the operands' dtype."""
    return lambda gate, up: change(gate.float(), up.float()).to(gate.dtype)


def _silu(g: torch.Tensor) -> torch.Tensor:
    return g * g.sigmoid()


MUTANTS = {
    "gate and up exchanged": _computed(lambda g, u: g * _silu(u)),
    "up activated as well": _computed(lambda g, u: _silu(g) * _silu(u)),
    "up ignored": _computed(lambda g, _: _silu(g)),
    "sum for product": _computed(lambda g, u: _silu(g) + u),
    "sigmoid alone": _computed(lambda g, u: g.sigmoid() * u),
    "tanh for sigmoid": _computed(lambda g, u: g * g.tanh() * u),
    "sigmoid of 1.702 gate": _computed(lambda g, u: g * (1.702 * g).sigmoid() * u),
    "rectified": _computed(lambda g, u: g.relu() * u),
    "piecewise linear sigmoid": _computed(lambda g, u: g * ((g + 3).clamp(0.0, 6.0) / 6) * u),
    "gate held below ten": _computed(lambda g, u: _silu(g.clamp(max=10.0)) * u),
    "large exponentials divided": _computed(lambda g, u: g * (g.exp() / (1 + g.exp())) * u),
    "first gate for the whole row": _computed(lambda g, u: _silu(g[..., :1]) * u),
    "one row's gate for all": _computed(lambda g, u: _silu(g[:1]) * u),
}


def _rounded_between(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Round the activation to the operands' dtype before the product, as a chain of two operators does."""
    return (_silu(gate.float()).to(gate.dtype).float() * up.float()).to(gate.dtype)


VARIANTS = {
    "divided by one plus an exponential": _computed(lambda g, u: g / (1 + (-g).exp()) * u),
    "powers of two": _computed(lambda g, u: g * u / (1 + (g * -1.4426950408889634).exp2())),
    "rounded before the product": _rounded_between,
}


SILU_MUL = Operation(
    name="silu_mul",
    summary="SiLU of the gate times the other projection, element by element",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="gate", axes=("batch", "hidden_size")),
        TensorSpec(name="up", axes=("batch", "hidden_size")),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="silu_mul(gate, up) -> y",
    reference=silu_mul,
    oracle=oracle,
    numerics=(
        "Nothing is summed: n = 1. For a negative gate the result is about gate exp(gate) up, and a kernel that "
        "takes powers of two multiplies the gate by log2 e, which errs by about u_acc |gate| in the exponent and so "
        "relative to y; the rest errs by a few u_acc: S = |y| (1 + max(-gate, 0) / 4). Below gate = -87 the sigmoid "
        "leaves fp32's normal numbers, and exp(-gate) overflows at -88.7, so that the usual 1 / (1 + exp(-gate)) is "
        "zero: a sigmoid, or its product with one factor, may be off by the smallest normal number times the other "
        "factors, 2^-126 (1 + |gate|) (1 + |up|), which is in S as 2^-106 of it. The activation may be rounded "
        "before it is multiplied: two u_out. Where the product overflows the output's type, so may the answer."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 14336},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 14336},
        {"batch": 64, "hidden_size": 18944},
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
    mutants=MUTANTS,
    variants=VARIANTS,
)
