"""One running sum in fp32 is always within the bound, and what is wrong by more isn't."""

import dataclasses
from collections import Counter

import pytest
import torch

from forge.domain.input_kind import InputKind
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF
from forge.lab.inputs.draw import draw
from forge.lab.inputs.mixed import nearest_powers
from forge.lab.judge import JudgedOutput, judge
from forge.operations import find_operation
from forge.operations.operation import Expectation
from forge.operations.running_sum import _equal_pairs, drift_share

ROWS, POLICY = 256, Policy()
GROWTH = POLICY.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"]


def running_sum(terms: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(terms.shape[0])
    for column in terms.t().contiguous():
        total = total + column
    return total.unsqueeze(-1)


def softmax(x: torch.Tensor) -> torch.Tensor:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / running_sum(e)


def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x * (running_sum(x * x) / x.shape[1] + eps).rsqrt() * weight


def judged(name: str, inputs: tuple[torch.Tensor, ...], got: torch.Tensor) -> JudgedOutput:
    operation = find_operation(name)
    arguments = (*inputs, *operation.scalars.values())
    (expected,), baseline = operation.oracle(*arguments), operation.reference(*arguments)
    return judge(got, expected, baseline, dtype="fp32", policy=POLICY)


def drawn(name: str, width: int, kind: InputKind) -> tuple[torch.Tensor, ...]:
    return draw(find_operation(name), {"batch": ROWS, "hidden_size": width}, "fp32", kind, seed=1)


@pytest.mark.parametrize("kind", ["normal", "small", "outlier_channel", "rows_apart", "heavy_tails"])
def test_one_running_sum_is_within_the_bound_for_unpatterned_values(kind: InputKind) -> None:
    (x,) = drawn("softmax", 4096, kind)
    assert judged("softmax", (x,), softmax(x)).bound_used < 0.9
    x, weight = drawn("rmsnorm", 4096, kind)
    assert judged("rmsnorm", (x, weight), rmsnorm(x, weight, 1e-6)).bound_used < 0.9


def test_a_running_sum_that_drops_a_row_behind_its_outliers_is_within_the_bound() -> None:
    x, weight = drawn("rmsnorm", 4096, "normal")
    x[:, :8] = 4_200.0
    got, operation = rmsnorm(x, weight, 1e-6), find_operation("rmsnorm")
    (expected,), baseline = operation.oracle(x, weight, 1e-6), operation.reference(x, weight, 1e-6)
    assert judge(got, expected, baseline, dtype="fp32", policy=POLICY).within
    assert isinstance(expected, Expectation)
    without = dataclasses.replace(expected, drift=None)
    assert not judge(got, without, baseline, dtype="fp32", policy=POLICY).within


@pytest.mark.parametrize("kind", ["normal", "outlier_channel", "heavy_tails", "ordered"])
def test_a_square_left_out_is_still_found(kind: InputKind) -> None:
    x, weight = drawn("rmsnorm", 1024, kind)
    largest = x.abs().argmax(-1, keepdim=True)
    total = x.square().sum(-1, keepdim=True) - x.gather(-1, largest).square()
    assert not judged("rmsnorm", (x, weight), x * (total / 1024 + 1e-6).rsqrt() * weight).within


@pytest.mark.parametrize("kind", ["outlier_channel", "rows_apart", "heavy_tails"])
def test_exponentials_in_half_precision_are_still_refused(kind: InputKind) -> None:
    (x,) = drawn("softmax", 4096, kind)
    e = (x - x.amax(-1, keepdim=True)).exp().bfloat16().float()
    assert not judged("softmax", (x,), e / e.sum(-1, keepdim=True)).within


def of_few_numbers() -> torch.Tensor:
    """Rows of powers of two, as in some draws of the kind `mixed`: each number occurs dozens of times."""
    drawn = torch.randn(ROWS, 1224, generator=torch.Generator().manual_seed(1))
    return 4.0 * nearest_powers(drawn)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_running_sum_of_terms_that_repeat_is_within_the_bound(*, in_order: bool) -> None:
    x = of_few_numbers()
    x = x.sort(-1).values if in_order else x
    assert judged("softmax", (x,), softmax(x)).within
    e = (x - x.amax(-1, keepdim=True)).exp()
    assert not judged("softmax", (x,), e / (e.sum(-1, keepdim=True) - 1)).within  # without a largest one


def test_usual_values_hardly_drift() -> None:
    for width in (256, 1024, 4096):
        squares = drawn("rmsnorm", width, "normal")[0].double().square()
        assert float(drift_share(squares).max()) < 0.2 * GROWTH * (width**0.5 + 8)
        assert float(drift_share(drawn("softmax", width, "normal")[0].double().softmax(-1)).max()) == 0


def test_terms_that_are_dropped_and_terms_that_are_rounded_alike_are_counted() -> None:
    dropped = torch.tensor([[1.0, 2.0**-25, 2.0**-26, 0.5]], dtype=torch.float64)
    assert float(drift_share(dropped)) == pytest.approx((2.0**-25 + 2.0**-26) / 1.5)
    alike = torch.tensor([[1.0, 1.0 - 2.0**-24, 1.0, 1.0]], dtype=torch.float64)
    assert float(drift_share(alike)) == pytest.approx(2.0**-24 / 4)


@pytest.mark.parametrize("terms", [[], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [3.0], [2.0, 2.0]])
def test_nothing_zeros_equal_terms_and_infinities_do_not_drift(terms: list[float]) -> None:
    assert drift_share(torch.tensor([terms], dtype=torch.float64)).tolist() == [[0.0]]


@pytest.mark.parametrize("sizes", [(65,), (1, 1), (7, 130), (2, 3, 64)])
def test_equal_terms_are_counted_as_one_counts_them_by_hand(sizes: tuple[int, ...]) -> None:
    terms = torch.randint(4, sizes, generator=torch.Generator().manual_seed(5)).double()
    step = torch.ones((*sizes[:-1], 1), dtype=torch.float64) / 2
    if len(sizes) == 2 and terms.numel() > 1:
        terms[0, 0], step[0] = float("nan"), float("nan")
    counted = [
        sum(often**2 for one, often in Counter(row).items() if one > above)
        for row, (above,) in zip(terms.reshape(-1, sizes[-1]).tolist(), step.reshape(-1, 1).tolist(), strict=True)
    ]
    found = _equal_pairs(terms.sort(-1).values, step)
    assert (found.shape, found.flatten().tolist()) == (step.shape, counted)


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, first: int = 0) -> torch.Tensor:
    """Causal attention with one running sum of the weights and one of the products, from position `first` on."""
    tokens, length = q.shape[0], k.shape[0]
    scores = torch.einsum("thgd,lhd->thgl", q, k) * q.shape[-1] ** -0.5
    hidden = torch.ones(tokens, length, dtype=torch.bool).triu(length - tokens + 1)[:, None, None]
    scores = scores.masked_fill(hidden, float("-inf"))
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    total, y = torch.zeros_like(powers[..., :1]), torch.zeros_like(q)
    for position in range(first, length):
        total = total + powers[..., position, None]
    for position in range(first, length):
        y = y + powers[..., position, None] / total * v[position, :, None]
    return y


@pytest.mark.parametrize("values", ["powers of two", "of any size", "equal"])
def test_running_sums_of_a_causal_attention_with_nearly_equal_scores_are_within_the_bound(values: str) -> None:
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(8, 2, 2, 32, generator=generator) * 2.0**-20
    k, v = (torch.randn(1500, 2, 32, generator=generator).abs() for _ in range(2))
    v = {"powers of two": nearest_powers(v), "equal": torch.full_like(v, 1 / 3)}.get(values, v)
    assert judged("attention_prefill", (q, k, v), attended(q, k, v)).within
    assert values == "equal" or not judged("attention_prefill", (q, k, v), attended(q, k, v, first=1)).within


def test_terms_of_zero_are_no_terms() -> None:
    alike = torch.tensor([[1.0, 1.0 - 2.0**-24, 1.0, 1.0]], dtype=torch.float64)
    masked = torch.cat((alike, torch.zeros(1, 4, dtype=torch.float64)), -1)
    assert float(drift_share(masked)) == float(drift_share(alike)) > 0
