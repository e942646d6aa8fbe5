"""The bound: NaN and infinity are never within, and it grows with what it says it grows with."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.domain.operation import Expectation
from forge.domain.policy import Policy
from forge.domain.tensors import DTYPES, UNIT_ROUNDOFF, DType
from forge.lab.inputs import torch_dtype
from forge.lab.judge import Judged, judge, plainly_within

POLICY = Policy()
finite = st.floats(min_value=-1e4, max_value=1e4, allow_nan=False, width=32)
rows = st.lists(st.lists(finite, min_size=3, max_size=3), min_size=1, max_size=4)


def expectation(values: list[list[float]], *, terms: int = 16, roundings: int = 1) -> Expectation:
    value = torch.tensor(values, dtype=torch.float64)
    return Expectation(value=value, scale=value.abs(), terms=terms, roundings=roundings)


def judged(got: torch.Tensor, expected: Expectation, baseline: torch.Tensor | None = None, **rest: object) -> Judged:
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


def test_the_worst_element_is_named() -> None:
    expected = expectation([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    got = expected.value.float()
    got[1, 2] = 7.0
    result = judged(got, expected)
    assert (result.worst, result.expected, result.got) == ((1, 2), 6.0, 7.0)
