"""The bound: NaN and infinity are never within, and it grows with what it says it grows with."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.domain.policy import Policy
from forge.domain.tensors import DTYPES, UNIT_ROUNDOFF, DType
from forge.lab.inputs.draw import torch_dtype
from forge.lab.judge import SMALLEST_SIZE, JudgedOutput, judge, judge_specials, plainly_within, row_blocks, spread
from forge.lab.judge.elementwise import allowed
from forge.operations.operation import Exact, Expectation, Expected, Grid, Quantised, Ranked

POLICY = Policy()
finite = st.floats(min_value=-1e4, max_value=1e4, allow_nan=False, width=32)
rows = st.lists(st.lists(finite, min_size=3, max_size=3), min_size=1, max_size=4)


def expectation(values: list[list[float]], *, terms: int = 16, roundings: int = 1) -> Expectation:
    value = torch.tensor(values, dtype=torch.float64)
    return Expectation(value=value, scale=value.abs(), terms=terms, roundings=roundings)


def judged(
    got: torch.Tensor, expected: Expected, baseline: torch.Tensor | None = None, **rest: object
) -> JudgedOutput:
    exact = expected.value.float() if baseline is None else baseline
    return judge(got, expected, exact, **{"dtype": "fp32", "policy": POLICY, **rest})  # type: ignore[arg-type]


@given(rows, st.sampled_from(DTYPES))
def test_the_oracle_rounded_once_is_always_within(values: list[list[float]], dtype: DType) -> None:
    expected = expectation(values)
    rounded = expected.value.to(torch_dtype(dtype))
    assert judged(rounded, expected, rounded, dtype=dtype).within
    assert plainly_within(rounded, expected, dtype=dtype, policy=POLICY)


@given(rows, st.data(), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_nan_and_infinity_are_never_within(values: list[list[float]], data: st.DataObject, bad: float) -> None:
    expected = expectation(values)
    got = expected.value.float()
    row = data.draw(st.integers(0, len(values) - 1))
    column = data.draw(st.integers(0, 2))
    got[row, column] = bad
    result = judged(got, expected)
    assert not result.within
    assert not result.finite
    assert result.worst == (row, column)
    assert result.bound_used == math.inf
    assert not plainly_within(got, expected, dtype="fp32", policy=POLICY)


@given(rows, st.sampled_from([math.nan, math.inf]))
def test_a_baseline_that_overflows_excuses_nobody(values: list[list[float]], bad: float) -> None:
    expected = expectation(values)
    baseline = torch.full(expected.value.shape, bad)
    assert not judged(expected.value.float() * 1.01 + 1, expected, baseline).within
    assert judged(expected.value.float(), expected, baseline).within


@given(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda sizes: 0 in sizes))
def test_no_elements_are_within(sizes: tuple[int, int]) -> None:
    empty = torch.empty(sizes)
    nothing = Expectation(value=empty.double(), scale=empty.double(), terms=4)
    assert judge(empty, nothing, empty, dtype="fp32", policy=POLICY).within
    assert plainly_within(empty, nothing, dtype="fp32", policy=POLICY)


@given(
    st.floats(1e-3, 1e3),
    st.integers(1, 10**6),
    st.sampled_from(DTYPES),
    st.integers(1, 4),
    st.booleans(),
)
def test_the_allowed_error_is_the_documented_formula(
    size: float, terms: int, dtype: DType, roundings: int, patterned: bool
) -> None:
    expected = expectation([[size]], terms=terms, roundings=roundings)
    result = judged(expected.value, expected, expected.value, dtype=dtype, patterned=patterned)
    growth = terms + 8 if patterned else math.sqrt(terms) + 8
    promised = (
        roundings * UNIT_ROUNDOFF[dtype] * size + POLICY.tolerance_accumulate_multiple * 2.0**-24 * growth * size
    )
    smallest = {"fp32": 2.0**-126, "bf16": 2.0**-126, "fp16": 2.0**-24}[dtype]
    assert result.allowed_error == pytest.approx(promised + smallest, rel=1e-12)


@given(st.floats(1e-3, 1e3), st.integers(1, 10**5), st.floats(1.01, 100))
def test_the_bound_grows_with_terms_with_size_and_with_the_baselines_error(
    size: float, terms: int, more: float
) -> None:
    def allowed(size: float, terms: int, baseline_error: float) -> float:
        expected = expectation([[size]], terms=terms)
        return judged(expected.value, expected, expected.value + baseline_error).allowed_error

    least = allowed(size, terms, 0.0)
    assert allowed(size, math.ceil(terms * more) + 1, 0.0) > least
    assert allowed(size * more, terms, 0.0) > least
    assert allowed(size, terms, least) == pytest.approx(POLICY.tolerance_baseline_multiple * least, rel=1e-6)


def test_a_bad_baseline_row_loosens_only_its_own_row() -> None:
    expected = expectation([[1.0] * 3, [1.0] * 3])
    baseline = torch.tensor([[1.0] * 3, [1.1] * 3])
    assert judged(torch.tensor([[1.0] * 3, [1.2] * 3]), expected, baseline).within
    assert not judged(torch.tensor([[1.2] * 3, [1.0] * 3]), expected, baseline).within


@settings(max_examples=50)
@given(rows, st.floats(0, 1e-4))
def test_what_is_plainly_within_is_within(values: list[list[float]], relative: float) -> None:
    expected = expectation(values)
    got = (expected.value * (1 + relative)).float()
    if plainly_within(got, expected, dtype="fp32", policy=POLICY):
        assert judged(got, expected).within


def test_an_infinity_is_not_plainly_right_where_nothing_bounds_it() -> None:
    unbounded = dataclasses.replace(expectation([[1.0, 2.0]]), scale=torch.tensor([[1.0, math.inf]]).double())
    got = torch.tensor([[1.0, math.inf]])
    assert not plainly_within(got, unbounded, dtype="fp32", policy=Policy())
    assert plainly_within(torch.tensor([[1.0, 9.0]]), unbounded, dtype="fp32", policy=Policy())


def test_the_worst_element_is_named() -> None:
    expected = expectation([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    got = expected.value.float()
    got[1, 2] = 7.0
    result = judged(got, expected)
    assert (result.worst, result.expected, result.got) == ((1, 2), 6.0, 7.0)


@pytest.mark.parametrize("sizes", [(3, 1000, 17), (200, 260), (2, 20_000), (40_000, 1)])
@pytest.mark.parametrize("spoilt", [0.0, 1e-3, math.inf])
def test_blocks_of_rows_are_judged_as_the_whole_output(
    sizes: tuple[int, ...], spoilt: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = torch.randn(sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(18))
    factor = torch.linspace(0, 2, sizes[-1], dtype=torch.float64).expand_as(value)
    expected = Expectation(value=value, scale=value.abs(), terms=16, last_factor=factor)
    got, baseline = value.float(), value.bfloat16().float()
    got.view(-1)[got.numel() * 2 // 3] += spoilt
    assert len(row_blocks.row_blocks(got)) > 1
    found = judged(got, expected, baseline), plainly_within(got, expected, dtype="fp32", policy=POLICY)
    monkeypatch.setattr(row_blocks, "BLOCK_ELEMENTS", got.numel())
    assert len(row_blocks.row_blocks(got)) == 1
    assert found == (judged(got, expected, baseline), plainly_within(got, expected, dtype="fp32", policy=POLICY))
    assert found[1] == (spoilt == 0)


def test_integers_must_be_exact_where_that_is_declared() -> None:
    sums = Expectation(**{**vars(expectation([[3.0, -4.0, 0.0]], terms=1)), "on_integers": "exact"})
    exact = sums.value.float()
    assert judged(exact, sums, integers=True).within
    assert judged(-exact * -1, sums, integers=True).within
    above = torch.nextafter(exact, torch.full_like(exact, math.inf))
    assert not judged(above, sums, integers=True).within
    assert judged(torch.where(exact == 0, exact, above), sums).within


def test_on_integers_a_sum_adds_no_error_of_its_own() -> None:
    usual = expectation([[1.0]], terms=10**6)
    exact = Expectation(**{**vars(usual), "on_integers": "exact_sums"})
    allowed = {one: judged(usual.value, exact, integers=one).allowed_error for one in (True, False)}
    assert allowed[False] / allowed[True] == pytest.approx((1000 * 2 + 17) / (8 * 2 + 1), rel=1e-3)
    assert judged(usual.value, usual, integers=True).allowed_error == allowed[False]


SPECIAL = [math.nan, math.inf, -math.inf, 1.0]


@given(st.sampled_from(SPECIAL), st.sampled_from(SPECIAL), st.sampled_from(SPECIAL))
def test_a_special_value_is_right_where_the_oracle_or_an_overflowing_reference_has_it(
    got: float, oracle: float, reference: float
) -> None:
    expected = expectation([[oracle, 2.0]])
    result = judge_specials(
        torch.tensor([[got, 2.0]]), expected, torch.tensor([[reference, 2.0]]), dtype="fp32", policy=POLICY
    )
    assert result.within == any(got == one or (math.isnan(got) and math.isnan(one)) for one in (oracle, reference))
    assert (result.bound_used <= 1) == result.within


def test_finite_elements_beside_special_ones_keep_their_bound() -> None:
    expected = expectation([[math.nan, 2.0], [1.0, 2.0]])
    baseline = expected.value.float()
    for got, right in ((2.0, True), (2.0001, False), (math.nan, False), (math.inf, False)):
        output = torch.tensor([[math.nan, 2.0], [1.0, got]])
        result = judge_specials(output, expected, baseline, dtype="fp32", policy=POLICY)
        assert result.within == right
        assert right or result.worst == (1, 1)


def test_nan_spreads_within_a_row_of_sums_only_where_that_is_allowed() -> None:
    expected = expectation([[math.nan, 0.0], [1.0, 2.0]], terms=2)
    spread_out = torch.tensor([[math.nan, math.nan], [1.0, 2.0]])
    baseline = expected.value.float()
    for may_spread in (True, False):
        result = judge_specials(
            spread_out, expected, baseline, dtype="fp32", policy=POLICY, nan_may_spread=may_spread
        )
        assert result.within == may_spread
    for wrong, terms in (
        ([[math.nan, 0.0], [math.nan, 2.0]], 2),
        ([[0.0, math.nan], [1.0, 2.0]], 2),
        ([[math.nan, math.inf], [1.0, 2.0]], 2),
        ([[math.nan, math.nan], [1.0, 2.0]], 1),
    ):
        other = expectation([[math.nan, 0.0], [1.0, 2.0]], terms=terms)
        result = judge_specials(
            torch.tensor(wrong), other, baseline, dtype="fp32", policy=POLICY, nan_may_spread=True
        )
        assert not result.within


def test_what_overflows_the_outputs_type_may_be_infinite() -> None:
    expected = expectation([[1e6, 2.0]])
    output = torch.tensor([[math.inf, 2.0]], dtype=torch.float16)
    assert judge_specials(output, expected, output, dtype="fp16", policy=POLICY).within
    assert not judge_specials(-output, expected, output, dtype="fp16", policy=POLICY).within


@pytest.mark.parametrize(
    ("value", "got", "within"),
    [
        (1e6, math.inf, True),
        (-1e6, -math.inf, True),
        (65519.0, math.inf, True),
        (1e6, -math.inf, False),
        (1e6, 65504.0, False),
        (1e6, math.nan, False),
        (6e4, math.inf, False),
    ],
)
def test_values_too_large_for_the_outputs_type_are_infinities(value: float, got: float, within: bool) -> None:
    expected = expectation([[value, 1.0]])
    output = torch.tensor([[got, 1.0]], dtype=torch.float16)
    assert judged(output, expected, expected.value.half(), dtype="fp16").within == within


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9), st.data())
def test_whole_numbers_are_equal_or_wrong(values: list[int], data: st.DataObject) -> None:
    expected = Exact(torch.tensor(values))
    got = torch.tensor(values)
    assert judged(got, expected).within
    place = data.draw(st.integers(0, len(values) - 1))
    got[place] += data.draw(st.sampled_from([-1, 1]))
    wrong = judged(got, expected)
    assert (wrong.within, wrong.worst) == (False, (place,))


def test_truth_values_are_equal_or_wrong() -> None:
    expected = Exact(torch.tensor([True, False]))
    assert judged(torch.tensor([True, False]), expected).within
    assert not judged(torch.tensor([True, True]), expected).within


def quantised(unrounded: list[float], uncertainty: float = 0.01) -> Quantised:
    values = torch.tensor(unrounded, dtype=torch.float64)
    return Quantised(unrounded=values, uncertainty=torch.full_like(values, uncertainty))


@pytest.mark.parametrize("grid", ["whole", "fp8_e4m3"])
@given(st.lists(st.floats(-500, 500), min_size=1, max_size=9))
def test_the_nearest_of_a_grid_is_torchs_own(grid: Grid, values: list[float]) -> None:
    unrounded = torch.tensor(values, dtype=torch.float32).double().clamp(-448, 448)
    own = unrounded.round() if grid == "whole" else unrounded.float().to(torch.float8_e4m3fn).double()
    assert torch.equal(Quantised(unrounded, torch.zeros_like(unrounded), grid).value, own)


def test_an_fp8_number_is_its_neighbour_at_a_rounding_boundary_alone() -> None:
    values = torch.tensor([17.0 - 1e-7, 300.0, 2.0**-9, 448.0], dtype=torch.float64)
    expected = Quantised(values, 1e-6 * values.abs(), "fp8_e4m3")
    for got, right in (
        ([16, 288, 2**-9, 448], True),
        ([18, 288, 2**-9, 448], True),  # 17 is half-way, and within the uncertainty
        ([16, 320, 2**-9, 448], False),
        ([16, 288, 2**-8, 448], False),
        ([16, 288, 2**-9, 416], False),
        ([16, 288, math.nan, 448], False),
    ):
        assert judged(torch.tensor(got).to(torch.float8_e4m3fn), expected).within == right


def test_ties_dont_count_among_the_hundredth_that_may_differ() -> None:
    ties = quantised([2.5] * 50 + [3.0] * 150)
    assert judged(torch.tensor([2] * 25 + [3] * 175), ties).within
    near = quantised([2.495] * 50 + [3.0] * 150)
    assert judged(torch.tensor([2] * 48 + [3] * 152), near).within
    assert not judged(torch.tensor([2] * 25 + [3] * 175), near).within


def ranked(values: list[float], count: int, uncertainty: float = 1e-9) -> Ranked:
    row = torch.tensor([values], dtype=torch.float64)
    return Ranked(row, torch.full_like(row, uncertainty), count)


@pytest.mark.parametrize(
    ("got", "within"),
    [
        ([1, 3], True),
        ([1, 4], True),
        ([3, 1], False),
        ([1, 0], False),
        ([1, 1], False),
        ([1, 5], False),
        ([1, -(2**31)], False),
    ],
)
def test_of_equal_values_any_position_will_do_and_none_twice(got: list[int], within: bool) -> None:
    expected = ranked([0.1, 0.9, 0.0, 0.5, 0.5], 2)
    assert judged(torch.tensor([got], dtype=torch.int32), expected).within == within


def test_values_within_the_uncertainty_may_change_places() -> None:
    got = torch.tensor([[1, 0]])
    assert judged(got, ranked([0.5, 0.5 - 1e-7], 2, uncertainty=1e-7)).within
    assert not judged(got, ranked([0.5, 0.5 - 1e-6], 2, uncertainty=1e-7)).within


def test_a_row_with_a_nan_has_no_order_but_its_positions_exist() -> None:
    expected = ranked([math.nan, 1.0, 2.0], 2)
    assert judged(torch.tensor([[1, 1]]), expected).within
    assert not judged(torch.tensor([[1, 3]]), expected).within


def test_a_quantum_is_forgiven_at_a_rounding_boundary_alone() -> None:
    expected = quantised([1.497, 1.3, -2.0, 7.0])
    for got, right in (
        ([1, 1, -2, 7], True),
        ([2, 1, -2, 7], True),
        ([1, 2, -2, 7], False),
        ([0, 1, -2, 7], False),
        ([1, 1, -2, 6], False),
    ):
        assert judged(torch.tensor(got), expected).within == right


def test_ninety_nine_in_a_hundred_quantised_elements_are_equal() -> None:
    expected = quantised([0.499] * 1000)
    for differing, right in ((0, True), (10, True), (11, False)):
        got = torch.zeros(1000, dtype=torch.int8)
        got[:differing] = 1
        assert judged(got, expected).within == right


def test_two_answers_may_be_rounded_to_either_neighbour_but_no_further() -> None:
    expected = expectation([[1.0]], terms=1)
    one = torch.tensor([[1.0]], dtype=torch.bfloat16)
    near, far = (one + one * UNIT_ROUNDOFF["bf16"] * steps for steps in (2, 4))
    assert spread(one, one, expected, dtype="bf16", policy=POLICY) == 0
    assert spread(one, near, expected, dtype="bf16", policy=POLICY) <= 1
    assert spread(one, far, expected, dtype="bf16", policy=POLICY) > 1
    assert spread(one, one * math.nan, expected, dtype="bf16", policy=POLICY) == math.inf


def test_a_large_element_of_a_row_says_nothing_of_the_small_ones_beside_it() -> None:
    expected = expectation([[0.59, 1e-5, 2e-5]])
    baseline = expected.value.bfloat16()
    assert judged(baseline, expected, baseline, dtype="bf16").within
    dropped = baseline.clone()
    dropped[0, 1:] = 0
    assert float((dropped.double() - expected.value).abs()[0, 1]) < float(
        (baseline.double() - expected.value).abs()[0, 0]
    )
    assert judged(dropped, expected, baseline, dtype="bf16").bound_used > 50


def test_an_element_is_allowed_four_times_the_references_own_error_there() -> None:
    expected = expectation([[1.0, 1e-6]])
    baseline = expected.value.float() + torch.tensor([[0.0, 1e-3]])
    assert judged(expected.value.float() + torch.tensor([[0.0, 3.9e-3]]), expected, baseline).within
    assert not judged(expected.value.float() + torch.tensor([[0.0, 4.1e-3]]), expected, baseline).within


@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_a_scale_without_a_value_leaves_the_rows_own_error(scale: float) -> None:
    exact = expectation([[1.0, 2.0, 3.0]])
    expected = dataclasses.replace(exact, scale=torch.tensor([[scale, 2.0, 3.0]]))
    baseline = exact.value.float() + torch.tensor([[0.0, 1.0, 0.0]])
    bound = allowed(expected, baseline, dtype="fp32", policy=POLICY)
    assert not float(bound[0, 0]) < 4.0


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_each_term_of_a_sum_may_be_set_to_zero_where_it_is_subnormal(dtype: DType) -> None:
    smallest = SMALLEST_SIZE[dtype]
    exact = expectation([[2 * smallest, 0.0]])
    sums = dataclasses.replace(exact, terms=4)
    alone = dataclasses.replace(exact, terms=1)
    off = exact.value + torch.tensor([[3.5 * smallest, -3.5 * smallest]], dtype=torch.float64)
    assert judged(off, sums, exact.value, dtype=dtype).within
    assert not judged(off, alone, exact.value, dtype=dtype).within
    assert not judged(off + smallest, sums, exact.value, dtype=dtype).within


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_the_type_ends_an_intermediate_errs_by_its_smallest_number_times_what_follows(dtype: DType) -> None:
    smallest = SMALLEST_SIZE[dtype]
    exact = expectation([[8 * smallest, 0.0]], terms=1, roundings=2)
    off = exact.value + torch.tensor([[0.0, 5 * smallest]], dtype=torch.float64)
    assert not judged(off, exact, exact.value, dtype=dtype).within
    followed = dataclasses.replace(exact, last_factor=torch.tensor([[0.0, 6.0]], dtype=torch.float64))
    assert judged(off, followed, exact.value, dtype=dtype).within
    assert not judged(off.roll(1, 1) + exact.value, followed, exact.value, dtype=dtype).within
