"""Gated GELU: y = gate * Phi(gate) * up, element by element, with the exact distribution function (erf).

Sources of the definition: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), section 2. Shazeer, "GLU
Variants Improve Transformer" (2020), GEGLU in equation 5. It is `torch.nn.functional.gelu(approximate="none")`;
Gemma's tanh form is another operation, up to 5e-4 away from it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.operations.gated_activation import computed, gated_activation, rounded_between
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch

ROOT_HALF = math.sqrt(0.5)


def gelu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Gate, up [batch, hidden_size] -> y [batch, hidden_size]; exact GELU (erf), computed in fp32."""
    import torch

    return (torch.nn.functional.gelu(gate.float()) * up.float()).to(gate.dtype)


# Compute y [batch, hidden_size] = GELU(gate) * up in fp64; gate and up are shaped like y.
# The factor is computed by the complementary error function, which doesn't cancel. The error scale, shaped like y, is
# |gate * up| (1 + |erf(gate / sqrt(2))|) / 2.
def oracle(gate: torch.Tensor, up: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64, by the complementary error function, which doesn't cancel."""
    import torch

    g, u = gate.double(), up.double()
    size = (g * u).abs() * (0.5 + 0.5 * (g * ROOT_HALF).erf().abs())
    y = 0.5 * g * torch.special.erfc(-g * ROOT_HALF) * u
    return (Expectation(value=y, scale=size, terms=1, roundings=2, last_factor=u.abs()),)


def _gelu(g: torch.Tensor) -> torch.Tensor:
    return 0.5 * g * (1 + (g * ROOT_HALF).erf())


MUTANTS = {
    "gate and up exchanged": computed(lambda g, u: g * _gelu(u)),
    "up activated as well": computed(lambda g, u: _gelu(g) * _gelu(u)),
    "up ignored": computed(lambda g, _: _gelu(g)),
    "sum for product": computed(lambda g, u: _gelu(g) + u),
    "distribution alone": computed(lambda g, u: 0.5 * (1 + (g * ROOT_HALF).erf()) * u),
    "root of two left out": computed(lambda g, u: 0.5 * g * (1 + g.erf()) * u),
    "half left out": computed(lambda g, u: g * (1 + (g * ROOT_HALF).erf()) * u),
    "one left out": computed(lambda g, u: 0.5 * g * (g * ROOT_HALF).erf() * u),
    "sign of the error function": computed(lambda g, u: 0.5 * g * (1 - (g * ROOT_HALF).erf()) * u),
    "SiLU for GELU": computed(lambda g, u: g * g.sigmoid() * u),
    "rectified": computed(lambda g, u: g.relu() * u),
    "gate held below ten": computed(lambda g, u: _gelu(g.clamp(max=10.0)) * u),
    "first gate for the whole row": computed(lambda g, u: _gelu(g[..., :1]) * u),
    "one row's gate for all": computed(lambda g, u: _gelu(g[:1]) * u),
}


def _by_complement(g: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    import torch

    return 0.5 * g * torch.special.erfc(-g * ROOT_HALF) * u


VARIANTS = {
    "one plus the error function": computed(lambda g, u: 0.5 * (g * u) * (1 + (g * ROOT_HALF).erf())),
    "complementary error function": computed(_by_complement),
    "rounded before the product": rounded_between(_gelu),
}


GELU_MUL = gated_activation(
    "gelu_mul",
    summary="exact GELU (erf) of the gate times the other projection, element by element",
    reference=gelu_mul,
    oracle=oracle,
    numerics=(
        "Two terms, 1 and erf, are added and cancel for a negative gate, as they do in PyTorch. The sum errs "
        "by a few u_acc of their size, whatever remains of it. So S = |gate up| (1 + |erf|) / 2, and n = 1: "
        "nothing grows with a size. The argument of erf is rounded, which moves erf by less than u_acc / 2. "
        "The activation may be rounded before it is multiplied: two u_out. The tanh form differs by up to "
        "5e-4: fp32's bound refuses that. Beside the roundings of fp16 and bf16 it can't be told apart in "
        "every row. Where the product overflows the output's type, so may the answer."
    ),
    flops_each=5,
    served_width=5120,
    mutants=MUTANTS,
    variants=VARIANTS,
)
