"""Gated GELU in its tanh form: y = gate * (1 + tanh(z)) / 2 * up, z = sqrt(2 / pi) (gate + 0.044715 gate^3).

Sources of the definition: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), section 2, the approximation by
tanh; Shazeer, "GLU Variants Improve Transformer" (2020), GEGLU in equation 5. It is
`torch.nn.functional.gelu(approximate="tanh")`, which Gemma's models and kernel libraries use. `gelu_mul` is the erf
form, up to 5e-4 away from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import Additive, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Operation

if TYPE_CHECKING:
    import torch

FACTOR, CUBIC = math.sqrt(2 / math.pi), 0.044715
"""Factor of tanh's argument, and coefficient of its cubic term, as the paper gives them."""


def geglu_tanh(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Gate, up [batch, hidden_size] -> y [batch, hidden_size]; GELU by tanh, computed in fp32."""
    import torch

    return (torch.nn.functional.gelu(gate.float(), approximate="tanh") * up.float()).to(gate.dtype)


def oracle(gate: torch.Tensor, up: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64, by the logistic function: (1 + tanh(z)) / 2 is 1 / (1 + exp(-2z)), which doesn't cancel."""
    g, u = gate.double(), up.double()
    z = _argument(g)
    size = (g * u).abs() * (0.5 + 0.5 * z.tanh().abs())
    y = g * (2 * z).sigmoid() * u
    return (Expectation(value=y, scale=size, terms=1, roundings=2, last_factor=u.abs()),)


def _argument(g: torch.Tensor) -> torch.Tensor:
    return FACTOR * (g + CUBIC * g**3)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return 3 * shape["batch"] * shape["hidden_size"] * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 8 * shape["batch"] * shape["hidden_size"]


Pair = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _computed(change: Pair) -> Pair:
    """Return an operation with a formula in fp32, its result in the operands' dtype."""
    return lambda gate, up: change(gate.float(), up.float()).to(gate.dtype)


def _gelu(g: torch.Tensor) -> torch.Tensor:
    return 0.5 * g * (1 + _argument(g).tanh())


MUTANTS = {
    "gate and up exchanged": _computed(lambda g, u: g * _gelu(u)),
    "up activated as well": _computed(lambda g, u: _gelu(g) * _gelu(u)),
    "up ignored": _computed(lambda g, _: _gelu(g)),
    "sum for product": _computed(lambda g, u: _gelu(g) + u),
    "factor alone": _computed(lambda g, u: 0.5 * (1 + _argument(g).tanh()) * u),
    "cubic term left out": _computed(lambda g, u: 0.5 * g * (1 + (FACTOR * g).tanh()) * u),
    "square for cube": _computed(lambda g, u: 0.5 * g * (1 + (FACTOR * (g + CUBIC * g * g)).tanh()) * u),
    "root left out": _computed(lambda g, u: 0.5 * g * (1 + (g + CUBIC * g**3).tanh()) * u),
    "half left out": _computed(lambda g, u: g * (1 + _argument(g).tanh()) * u),
    "one left out": _computed(lambda g, u: 0.5 * g * _argument(g).tanh() * u),
    "sign of tanh": _computed(lambda g, u: 0.5 * g * (1 - _argument(g).tanh()) * u),
    "SiLU for GELU": _computed(lambda g, u: g * g.sigmoid() * u),
    "sigmoid of 1.702 for tanh": _computed(lambda g, u: g * (1.702 * g).sigmoid() * u),
    "rectified": _computed(lambda g, u: g.relu() * u),
    "gate held below ten": _computed(lambda g, u: _gelu(g.clamp(max=10.0)) * u),
    "first gate for the whole row": _computed(lambda g, u: _gelu(g[..., :1]) * u),
    "one row's gate for all": _computed(lambda g, u: _gelu(g[:1]) * u),
}


def _rounded_between(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Round the activation to the operands' dtype before the product, as a chain of two operators does."""
    return (_gelu(gate.float()).to(gate.dtype).float() * up.float()).to(gate.dtype)


VARIANTS = {
    "one plus tanh": _computed(lambda g, u: 0.5 * (g * u) * (1 + _argument(g).tanh())),
    "logistic function": _computed(lambda g, u: g * (2 * _argument(g)).sigmoid() * u),
    "two exponentials": _computed(lambda g, u: g * (1 - 1 / (1 + (2 * _argument(g)).exp())) * u),
    "rounded before the product": _rounded_between,
}


GEGLU_TANH = Operation(
    name="geglu_tanh",
    summary="GELU by tanh of the gate times the other projection, element by element",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="gate", axes=("batch", "hidden_size")),
        TensorSpec(name="up", axes=("batch", "hidden_size")),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="geglu_tanh(gate, up) -> y",
    reference=geglu_tanh,
    oracle=oracle,
    numerics=(
        "Two terms, 1 and tanh, are added and cancel for a negative gate, as they do in PyTorch: the sum errs by a "
        "few u_acc of their size, whatever remains of it. So S = |gate up| (1 + |tanh|) / 2, and n = 1: nothing "
        "grows with a size. The argument of tanh is rounded four times, which moves tanh by less than 2 u_acc, since "
        "|z| (1 - tanh(z)^2) is below 0.45. The activation may be rounded before it is multiplied: two u_out. The "
        "erf form differs by up to 5e-4, which fp32's bound refuses; beside the roundings of fp16 and bf16 it can't "
        "be told apart in every row. Where the product overflows the output's type, so may the answer."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 14336},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 14336},
        {"batch": 64, "hidden_size": 5120},
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
