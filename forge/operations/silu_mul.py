"""Gated SiLU: y = gate * sigmoid(gate) * up, element by element: the activation between the projections of an MLP.

Source of the definition: Shazeer, "GLU Variants Improve Transformer" (2020), SwiGLU in equation 5. vLLM and
FlashInfer name it silu_and_mul, with gate and up in one tensor; here they are two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.operations.gated_activation import computed, gated_activation, rounded_between
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch

UNDERFLOW = 2.0**-106
"""Factor of (1 + |gate|) (1 + |up|) in S. Times the bound's c u_acc 9, it is 1.1 times the smallest normal fp32."""


def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Gate, up [batch, hidden_size] -> y [batch, hidden_size], computed in fp32."""
    import torch

    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)


# Compute y [batch, hidden_size] = silu(gate) * up in fp64; gate and up are shaped like y.
# The error scale, shaped like y, is |y| times 1 + a quarter of a negative gate's magnitude, and room for underflow.
def oracle(gate: torch.Tensor, up: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    import torch

    g, u = gate.double(), up.double()
    y = torch.nn.functional.silu(g) * u
    size = y.abs() * (1 + (-g).clamp(min=0.0) / 4) + UNDERFLOW * (1 + g.abs()) * (1 + u.abs())
    return (Expectation(value=y, scale=size, terms=1, roundings=2, last_factor=u.abs()),)


def _silu(g: torch.Tensor) -> torch.Tensor:
    return g * g.sigmoid()


MUTANTS = {
    "gate and up exchanged": computed(lambda g, u: g * _silu(u)),
    "up activated as well": computed(lambda g, u: _silu(g) * _silu(u)),
    "up ignored": computed(lambda g, _: _silu(g)),
    "sum for product": computed(lambda g, u: _silu(g) + u),
    "sigmoid alone": computed(lambda g, u: g.sigmoid() * u),
    "tanh for sigmoid": computed(lambda g, u: g * g.tanh() * u),
    "sigmoid of 1.702 gate": computed(lambda g, u: g * (1.702 * g).sigmoid() * u),
    "rectified": computed(lambda g, u: g.relu() * u),
    "piecewise linear sigmoid": computed(lambda g, u: g * ((g + 3).clamp(0.0, 6.0) / 6) * u),
    "gate held below ten": computed(lambda g, u: _silu(g.clamp(max=10.0)) * u),
    "large exponentials divided": computed(lambda g, u: g * (g.exp() / (1 + g.exp())) * u),
    "first gate for the whole row": computed(lambda g, u: _silu(g[..., :1]) * u),
    "one row's gate for all": computed(lambda g, u: _silu(g[:1]) * u),
}


VARIANTS = {
    "divided by one plus an exponential": computed(lambda g, u: g / (1 + (-g).exp()) * u),
    "powers of two": computed(lambda g, u: g * u / (1 + (g * -1.4426950408889634).exp2())),
    "rounded before the product": rounded_between(_silu),
}


SILU_MUL = gated_activation(
    "silu_mul",
    summary="SiLU of the gate times the other projection, element by element",
    reference=silu_mul,
    oracle=oracle,
    numerics=(
        "Nothing is summed: n = 1. For a negative gate the result is about gate exp(gate) up. A kernel that "
        "takes powers of two multiplies the gate by log2 e. That errs by about u_acc |gate| in the exponent, "
        "and so relative to y. The rest errs by a few u_acc: S = |y| (1 + max(-gate, 0) / 4). Below gate = "
        "-87 the sigmoid leaves fp32's normal numbers. exp(-gate) overflows at -88.7, so that the usual 1 / "
        "(1 + exp(-gate)) is zero. So a sigmoid, or its product with one factor, may be off by the smallest "
        "normal number times the other factors. That is 2^-126 (1 + |gate|) (1 + |up|), which is in S as "
        "2^-106 of it. The activation may be rounded before it is multiplied: two u_out. Where the product "
        "overflows the output's type, so may the answer."
    ),
    flops_each=5,
    served_width=18944,
    mutants=MUTANTS,
    variants=VARIANTS,
)
