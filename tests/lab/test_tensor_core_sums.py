"""Sums as tensor cores of sm_90 form them are right: of 16-bit operands, and of fp8 if they leave for fp32 often."""

from dataclasses import replace

import pytest
import torch

from forge.domain.input_kind import InputKind
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.inputs.draw import draw
from forge.lab.judge.elementwise import judge_floats
from forge.operations import find_operation
from forge.operations.tensor_core_sums import AT_ONCE, RUNNING, STEP

OPERATION = find_operation("matmul_fp8")
SHAPE = {"m": 24, "k": 639, "n": 12}
NEVER = 1 << 20
"""Number of products after which a kernel with fast accumulation has moved nothing to fp32."""


def without_low_bits(numbers: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """Return the numbers cut off toward zero, at a step of the largest one's power of two."""
    step = torch.exp2(largest.log2().floor()) * STEP
    return torch.where(largest > 0, (numbers / step).trunc() * step, numbers)


def on_tensor_cores(x: torch.Tensor, w: torch.Tensor, running: int) -> torch.Tensor:
    """Return x [m, k] times w [n, k] in fp32, as an H100 forms it if each `running` products leave for fp32."""
    total = torch.zeros(x.shape[0], w.shape[0])
    held = total.double()
    for start in range(0, x.shape[1], AT_ONCE):
        left, right = (one[:, start : start + AT_ONCE].double() for one in (x, w))
        products = left[:, None] * right[None]
        largest = torch.maximum(products.abs().amax(-1), held.abs())
        held = without_low_bits(held, largest) + without_low_bits(products, largest[..., None]).sum(-1)
        if (start + AT_ONCE) % running == 0:
            total, held = total + held.float(), torch.zeros_like(held)
    return total + held.float()


def within(kind: InputKind, seed: int, *, running: int, shape: dict[str, int] = SHAPE) -> bool:
    x, w, x_scale, w_scale = draw(OPERATION, shape, "bf16", kind, seed=seed)
    (expected,) = OPERATION.oracle(x, w, x_scale, w_scale)
    got = (on_tensor_cores(x, w, running) * x_scale[:, None] * w_scale).bfloat16()
    right = OPERATION.reference(x, w, x_scale, w_scale)
    return judge_floats(got, expected, right, dtype="bf16", policy=Policy()).within


def test_the_simulation_gives_what_an_h100_gave() -> None:
    x, w, _, _ = draw(OPERATION, {"k": 600, "m": 89, "n": 5}, "bf16", "heavy_tails", seed=135049334859100)
    x_scale, w_scale = 0.0004885343951173127, 0.0625
    got = (on_tensor_cores(x[32:33], w[4:5], RUNNING) * x_scale * w_scale).bfloat16()
    assert got.item() == pytest.approx(-0.000469207764, rel=1e-8)


@pytest.mark.parametrize("kind", ["normal", "heavy_tails", "ordered", "equal_weights", "mixed"])
@pytest.mark.parametrize("running", [AT_ONCE, RUNNING])
def test_sums_that_leave_the_tensor_cores_are_within_the_bound(kind: InputKind, running: int) -> None:
    assert all(within(kind, seed, running=running) for seed in range(20))


def test_what_an_h100_gave_with_sums_of_128_products_is_within_the_bound() -> None:
    shape = {"k": 600, "m": 89, "n": 5}
    assert within("heavy_tails", 135049334859100, running=RUNNING, shape=shape)


@pytest.mark.parametrize("kind", ["ordered", "mixed"])
def test_sums_that_never_leave_the_tensor_cores_are_refused(kind: InputKind) -> None:
    assert not all(within(kind, seed, running=NEVER) for seed in range(60))


def in_16_bits(x: torch.Tensor, w: torch.Tensor, at_once: int) -> torch.Tensor:
    """Return x [m, k] times w [k, n] in fp32, with the running sum cut off toward zero after each `at_once` terms."""
    total = torch.zeros(x.shape[0], w.shape[1], dtype=torch.float64)
    for start in range(0, x.shape[1], at_once):
        total.addmm_(x[:, start : start + at_once].double(), w[start : start + at_once].double())
        mantissa, exponent = total.frexp()
        total = (mantissa * 2.0**24).trunc().ldexp(exponent - 24)
    return total.float()


@pytest.mark.parametrize("at_once", [8, 16])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["matmul", "matmul_bias_act"])
def test_long_sums_of_operands_in_order_may_lose_what_tensor_cores_cut_off(
    name: str, dtype: DType, at_once: int
) -> None:
    operation, shape = find_operation(name), {"m": 6, "k": 53248, "n": 8}
    for seed in range(3):
        inputs = draw(operation, shape, dtype, "ordered", seed=seed)
        (expected,) = operation.oracle(*inputs)
        y = in_16_bits(inputs[0], inputs[1], at_once)
        got = (torch.nn.functional.silu(y + inputs[2].float()) if len(inputs) > 2 else y).to(inputs[0].dtype)
        right = operation.reference(*inputs)
        assert judge_floats(got, expected, right, dtype=dtype, policy=Policy()).within
        assert not judge_floats(got, replace(expected, drift=None), right, dtype=dtype, policy=Policy()).within
