"""Bounds that follow the values: where known wrong answers would pass, and the errors let them be narrowed."""

import math
from collections.abc import Callable

import pytest
import torch

from forge.domain.digest import canonical
from forge.domain.own_operation import Contract, Local
from forge.domain.policy import Policy
from forge.lab.judge import judge
from forge.lab.reference.binding import errs_within, expectation
from forge.lab.reference.locality import locals_of, sizes_of
from forge.lab.reference.rounding import MOST_MAGNIFIED_ERROR
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, frozen, square_contract

Function = Callable[[torch.Tensor], torch.Tensor]
ROUNDING = 2.0**-24
WEIGHT = torch.randn(64, 64, generator=torch.Generator().manual_seed(5)) / 8
SLOPES = torch.logspace(0, -9, 64)


def sharp_softmax(x: torch.Tensor) -> torch.Tensor:
    return (6 * x).softmax(-1)


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ WEIGHT.to(x.dtype)


def seen(function: Function, *, rows: int = 64, low: bool = False) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What a function gives in fp64 on three draws [rows, 64], and how far off it and its operands' roundings are."""
    exacts, errors = [], []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        x = torch.rand(rows, 64, generator=generator) if low else torch.randn(rows, 64, generator=generator)
        off = 1 + ROUNDING * (2.0 * torch.randint(2, x.shape, generator=generator).double() - 1)
        exact = function(x.double())
        exacts.append(exact)
        errors.append((function(x).double() - exact).abs().maximum((function(x.double() * off) - exact).abs()))
    return exacts, errors


def found(function: Function, *, low: bool = False) -> dict[str, Local]:
    return {one.around: one for one in locals_of(*seen(function, low=low), "fp32")}


@pytest.mark.parametrize(
    ("function", "low"), [(sharp_softmax, False), (lambda x: x.cumprod(-1), True), (lambda x: (4 * x).exp(), False)]
)
def test_errors_of_products_and_exponentials_follow_each_value(function: Function, low: bool) -> None:
    assert found(function, low=low)["all"].share == 0


@pytest.mark.parametrize("function", [product, lambda x: x.cumsum(-1), lambda x: torch.exp(x) - 1])
def test_errors_of_sums_that_cancel_follow_no_value_alone(function: Function) -> None:
    assert all(one.share >= 2.0**-8 for one in found(function).values())


def test_errors_of_rows_and_columns_of_different_size_follow_theirs() -> None:
    rows = found(lambda x: product(x) * SLOPES.to(x.dtype)[:, None])
    columns = found(lambda x: product(x) * SLOPES.to(x.dtype))
    assert "row" in rows
    assert not rows.keys() & {"all", "channel"}
    assert "channel" in columns
    assert not columns.keys() & {"all", "row"}


def test_a_few_values_tell_nothing() -> None:
    assert list(locals_of(*seen(sharp_softmax, rows=5), "fp32")) == []


@pytest.mark.parametrize("function", [sharp_softmax, product, lambda x: product(x) * SLOPES.to(x.dtype)])
def test_a_narrowed_bound_is_nowhere_wider_than_the_one_before(function: Function) -> None:
    exacts, errors = seen(function)
    for local in locals_of(exacts, errors, "fp32"):
        before, after = (
            expectation(one, one.results[0], exacts[0], Policy())
            for one in (
                square_contract(64),
                square_contract(64, local=local.model_copy(update={"error": 2 * local.error})),
            )
        )
        assert bool((after.scale <= before.scale).all())


def _online(x: torch.Tensor) -> torch.Tensor:
    scaled = 6 * x
    largest = torch.full_like(x[:, :1], -math.inf)
    total = torch.zeros_like(largest)
    for block in scaled.split(13, -1):
        then, largest = largest, largest.maximum(block.amax(-1, keepdim=True))
        total = total * (then - largest).exp() + (block - largest).exp().sum(-1, keepdim=True)
    return (scaled - largest).exp() / total


def _by_powers_of_two(x: torch.Tensor) -> torch.Tensor:
    powers = 6 * x * math.log2(math.e)
    shares = torch.exp2(powers - powers.amax(-1, keepdim=True))
    return shares * (1 / shares.sum(-1, keepdim=True))


HONEST: dict[str, Function] = {
    "one maximum after the other": _online,
    "powers of two": _by_powers_of_two,
    "the logarithm first": lambda x: (6 * x).log_softmax(-1).exp(),
    "fp64 inside": lambda x: sharp_softmax(x.double()).float(),
}
WRONG: dict[str, Function] = {
    "small ones are zero": lambda x: sharp_softmax(x).where(sharp_softmax(x) > 1e-9, 0.0),
    "half precision inside": lambda x: (6 * x).half().float().softmax(-1),
    "small ones one per cent more": lambda x: sharp_softmax(x).where(
        sharp_softmax(x) > 1e-6, 1.01 * sharp_softmax(x)
    ),
}


def _judged(function: Function) -> list[bool]:
    local = found(sharp_softmax)["all"]
    contract = square_contract(64, local=local.model_copy(update={"error": 2.0**-18}), error=2.0**-17)
    verdicts = []
    for seed in range(8):
        x = torch.randn(64, 64, generator=torch.Generator().manual_seed(100 + seed))
        expected = expectation(contract, contract.results[0], sharp_softmax(x.double()), Policy())
        judged = judge(function(x), expected, sharp_softmax(x), dtype="fp32", policy=Policy())
        verdicts.append(judged.within)
    return verdicts


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_softmax_is_within_the_narrowed_bound(name: str) -> None:
    assert all(_judged(HONEST[name]))


@pytest.mark.parametrize("name", WRONG)
def test_a_softmax_that_is_wrong_where_values_are_small_is_not(name: str) -> None:
    assert not any(_judged(WRONG[name]))


def test_what_is_too_small_for_the_type_may_be_zero() -> None:
    local = Local(around="all", share=0.0, error=2.0**-20)
    contract = square_contract(64, local=local)
    exact = torch.logspace(0, -44, 256, dtype=torch.float64).reshape(4, 64)
    right = exact.float()
    flushed = right.where(right.abs() >= 2.0**-126, 0.0)
    expected = expectation(contract, contract.results[0], exact, Policy())
    assert judge(flushed, expected, right, dtype="fp32", policy=Policy()).within
    lost = right.where(right.abs() >= 1e-36, 0.0)
    assert not judge(lost, expected, right, dtype="fp32", policy=Policy()).within
    assert errs_within(contract, contract.results[0], right, exact)
    assert not errs_within(contract, contract.results[0], lost, exact)


def test_sizes_of_a_value_and_of_those_around_it() -> None:
    exact = torch.tensor([[3.0, -4.0], [0.0, math.inf]], dtype=torch.float64)
    assert sizes_of(Local(around="row", share=0.0, error=0.0), exact).tolist() == [[3, 4], [0, math.inf]]
    around_row = sizes_of(Local(around="row", share=1.0, error=0.0), exact)
    assert around_row[0].tolist() == pytest.approx([3 + 12.5**0.5, 4 + 12.5**0.5])
    assert around_row[1].tolist() == [0, math.inf]


def test_a_contract_from_before_has_the_bytes_it_had() -> None:
    written = canonical(square_contract(64))
    assert b"local" not in written
    assert Contract.model_validate_json(written) == square_contract(64)
    narrowed = square_contract(64, local=Local(around="row", share=0.5, error=2.0**-20))
    assert Contract.model_validate_json(canonical(narrowed)) == narrowed


def test_a_running_product_is_a_task_and_a_plain_model_keeps_its_bound(walls: Walls) -> None:
    inputs = "def get_inputs():\n    return [torch.rand(16, 256)]\n"
    running = ask("import torch\ndef kernel(x):\n    return x.cumprod(-1)\n" + inputs)
    assert not running.admission.survivors
    local = running.contract.results[0].local
    assert local is not None
    assert (local.around, local.share) == ("all", 0.0)
    assert frozen().contract.results[0].local is None


def test_a_small_result_is_drawn_more_often_until_its_errors_tell_what_they_follow(walls: Walls) -> None:
    inputs = "def get_inputs():\n    return [torch.randn(6, 50, 11)]\n"
    products = ask("import torch\ndef kernel(x):\n    return torch.prod(x, 1)\n" + inputs)
    local = products.contract.results[0].local
    assert not products.admission.survivors
    assert local is not None
    assert (local.around, local.share) == ("all", 0.0)


@pytest.mark.parametrize("reached", ["torch.inf", "torch.nan"])
def test_a_reference_that_is_finite_only_where_it_is_asked_keeps_its_bound(reached: str, walls: Walls) -> None:
    inputs = "def get_inputs():\n    return [torch.rand(16, 256)]\n"
    broken = f"x * torch.where(x == x.float().to(x.dtype), 1.0, {reached})"  # fp32 has no value one rounding off
    (result,) = ask(f"import torch\ndef kernel(x):\n    return {broken}\n" + inputs).contract.results
    assert (result.error, result.local) == (2.0**-21, None)


def test_an_exponential_may_magnify_the_rounding_of_its_operand(walls: Walls) -> None:
    inputs = "def get_inputs():\n    return [torch.randn(16, 256)]\n"
    contract = ask("import torch\ndef kernel(x):\n    return torch.exp(4 * x)\n" + inputs).contract
    (result,) = contract.results
    assert 2.0**-21 < result.error <= MOST_MAGNIFIED_ERROR
    for seed in range(40):
        x = torch.randn(16, 256, generator=torch.Generator().manual_seed(seed))
        expected, right = expectation(contract, result, (4 * x.double()).exp(), Policy()), (4 * x).exp()
        by_powers_of_two = torch.exp2(x * (4 * math.log2(math.e)))
        assert judge(by_powers_of_two, expected, right, dtype="fp32", policy=Policy()).within
        halved = (4 * x).half().float().exp()
        assert not judge(halved, expected, right, dtype="fp32", policy=Policy()).within
