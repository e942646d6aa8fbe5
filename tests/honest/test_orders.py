"""A right kernel may multiply in any order: no question of the gates may take one order for wrong."""

import random
from collections.abc import Callable, Mapping

import pytest
import torch

from forge.domain.input_kind import InputKind
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.calls.judged_outputs import judged_outputs
from forge.lab.gates.scales import KINDS
from forge.lab.inputs.draw import draw
from forge.lab.judge.reference_call import outputs_of
from forge.lab.observed import Case, Observed
from forge.operations import find_operation

Outputs = tuple[torch.Tensor, ...]
Product = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
ORDERS: Mapping[str, Product] = {
    "first two": lambda a, b, c: (a * b) * c,
    "outer two": lambda a, b, c: (a * c) * b,
    "last two": lambda a, b, c: a * (b * c),
}
"""Orders in which a row's values, its scale and the weights may be multiplied."""
DRAWS, OF_MIXED = 4, 150
"""Numbers of draws of each kind of values, and of mixed ones, of which each is another pattern."""


def scale_of(rows: torch.Tensor, eps: float) -> torch.Tensor:
    return (rows.square().mean(-1, keepdim=True) + eps).rsqrt()


def rmsnorm(product: Product, x: torch.Tensor, weight: torch.Tensor, eps: float) -> Outputs:
    rows = x.float()
    return (product(rows, scale_of(rows, eps), weight.float()).to(x.dtype),)


def fused_add_rmsnorm(
    product: Product, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> Outputs:
    rows = x.float() + residual.float()
    return product(rows, scale_of(rows, eps), weight.float()).to(x.dtype), rows.to(x.dtype)


def layernorm(product: Product, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> Outputs:
    rows = x.float() - x.float().mean(-1, keepdim=True)
    return ((product(rows, scale_of(rows, eps), weight.float()) + bias.float()).to(x.dtype),)


def silu_mul(product: Product, gate: torch.Tensor, up: torch.Tensor) -> Outputs:
    return (product(gate.float(), torch.sigmoid(gate.float()), up.float()).to(gate.dtype),)


def gelu_mul(product: Product, gate: torch.Tensor, up: torch.Tensor) -> Outputs:
    share = 0.5 * (1 + torch.erf(gate.float() * 0.5**0.5))
    return (product(gate.float(), share, up.float()).to(gate.dtype),)


FORMULAS: Mapping[str, Callable[..., Outputs]] = {
    one.__name__: one for one in (rmsnorm, fused_add_rmsnorm, layernorm, silu_mul, gelu_mul)
}


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FORMULAS)
def test_no_order_of_a_product_is_refused(name: str, order: str, dtype: DType) -> None:
    for kind in KINDS:
        for _ in range(OF_MIXED if kind == "mixed" else DRAWS):
            seed = random.getrandbits(40)
            assert is_within(name, ORDERS[order], dtype, kind, seed), (kind, seed)


def is_within(name: str, product: Product, dtype: DType, kind: InputKind, seed: int) -> bool:
    operation, rng = find_operation(name), random.Random(seed)
    shape = {axis: rng.choice((1, 4, 10, 33)) for axis in operation.axes} | {
        operation.reduced_axis: rng.randint(32, 543)
    }
    inputs, scalars = draw(operation, shape, dtype, kind, seed=seed), tuple(operation.scalars.values())
    outputs = FORMULAS[name](product, *inputs, *scalars)
    results = judged_outputs(
        operation,
        Observed(Case(shape, kind, seed, inputs, scalars), outputs, 0),
        operation.oracle(*inputs, *scalars),
        outputs_of(operation, operation.reference, inputs, scalars),
        dtype=dtype,
        policy=Policy(),
    )
    return all(one.within for one in results)
