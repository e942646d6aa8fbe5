"""Gated GELU in its tanh form: y = gate * (1 + tanh(z)) / 2 * up, z = sqrt(2 / pi) (gate + 0.044715 gate^3).

Sources of the definition: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), section 2, the approximation by
tanh. GEGLU is in equation 5 of Shazeer, "GLU Variants Improve Transformer" (2020). It is
`torch.nn.functional.gelu(approximate="tanh")`, which Gemma's models and kernel libraries use. `gelu_mul` is the erf
form, up to 5e-4 away from it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.operations.gated_activation import computed, gated_activation, rounded_between
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch

FACTOR, CUBIC = math.sqrt(2 / math.pi), 0.044715
"""Factor of tanh's argument, and coefficient of its cubic term, as the paper gives them."""


def geglu_tanh(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Gate, up [batch, hidden_size] -> y [batch, hidden_size]; GELU by tanh, computed in fp32."""
    import torch

    return (torch.nn.functional.gelu(gate.float(), approximate="tanh") * up.float()).to(gate.dtype)


# Compute y [batch, hidden_size] = GELU(gate) * up in fp64; gate and up are shaped like y.
# The factor (1 + tanh(z)) / 2 is computed as 1 / (1 + exp(-2z)), which doesn't cancel. The error scale, shaped like
# y, is |gate * up| (1 + |tanh(z)|) / 2.
def oracle(gate: torch.Tensor, up: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64, by the logistic function: (1 + tanh(z)) / 2 is 1 / (1 + exp(-2z)), which doesn't cancel."""
    g, u = gate.double(), up.double()
    z = _argument(g)
    size = (g * u).abs() * (0.5 + 0.5 * z.tanh().abs())
    y = g * (2 * z).sigmoid() * u
    return (Expectation(value=y, scale=size, terms=1, roundings=2, last_factor=u.abs()),)


def _argument(g: torch.Tensor) -> torch.Tensor:
    return FACTOR * (g + CUBIC * g**3)


def _gelu(g: torch.Tensor) -> torch.Tensor:
    return 0.5 * g * (1 + _argument(g).tanh())


MUTANTS = {
    "gate and up exchanged": computed(lambda g, u: g * _gelu(u)),
    "up activated as well": computed(lambda g, u: _gelu(g) * _gelu(u)),
    "up ignored": computed(lambda g, _: _gelu(g)),
    "sum for product": computed(lambda g, u: _gelu(g) + u),
    "factor alone": computed(lambda g, u: 0.5 * (1 + _argument(g).tanh()) * u),
    "cubic term left out": computed(lambda g, u: 0.5 * g * (1 + (FACTOR * g).tanh()) * u),
    "square for cube": computed(lambda g, u: 0.5 * g * (1 + (FACTOR * (g + CUBIC * g * g)).tanh()) * u),
    "root left out": computed(lambda g, u: 0.5 * g * (1 + (g + CUBIC * g**3).tanh()) * u),
    "half left out": computed(lambda g, u: g * (1 + _argument(g).tanh()) * u),
    "one left out": computed(lambda g, u: 0.5 * g * _argument(g).tanh() * u),
    "sign of tanh": computed(lambda g, u: 0.5 * g * (1 - _argument(g).tanh()) * u),
    "SiLU for GELU": computed(lambda g, u: g * g.sigmoid() * u),
    "sigmoid of 1.702 for tanh": computed(lambda g, u: g * (1.702 * g).sigmoid() * u),
    "rectified": computed(lambda g, u: g.relu() * u),
    "gate held below ten": computed(lambda g, u: _gelu(g.clamp(max=10.0)) * u),
    "first gate for the whole row": computed(lambda g, u: _gelu(g[..., :1]) * u),
    "one row's gate for all": computed(lambda g, u: _gelu(g[:1]) * u),
}


VARIANTS = {
    "one plus tanh": computed(lambda g, u: 0.5 * (g * u) * (1 + _argument(g).tanh())),
    "logistic function": computed(lambda g, u: g * (2 * _argument(g)).sigmoid() * u),
    "two exponentials": computed(lambda g, u: g * (1 - 1 / (1 + (2 * _argument(g)).exp())) * u),
    "rounded before the product": rounded_between(_gelu),
}


GEGLU_TANH = gated_activation(
    "geglu_tanh",
    summary="GELU by tanh of the gate times the other projection, element by element",
    reference=geglu_tanh,
    oracle=oracle,
    numerics=(
        "Two terms, 1 and tanh, are added and cancel for a negative gate, as they do in PyTorch. The sum errs "
        "by a few u_acc of their size, whatever remains of it. So S = |gate up| (1 + |tanh|) / 2, and n = 1: "
        "nothing grows with a size. The argument of tanh is rounded four times, which moves tanh by less than "
        "2 u_acc, since |z| (1 - tanh(z)^2) is below 0.45. The activation may be rounded before it is "
        "multiplied: two u_out. The erf form differs by up to 5e-4: fp32's bound refuses that. Beside the "
        "roundings of fp16 and bf16 it can't be told apart in every row. Where the product overflows the "
        "output's type, so may the answer."
    ),
    flops_each=8,
    served_width=5120,
    mutants=MUTANTS,
    variants=VARIANTS,
)
