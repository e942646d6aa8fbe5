"""Errors taken together: honest formulas stay well inside the allowances, errors of one sign are refused."""

import pytest
import torch

from forge.domain.tensors import DTYPES, UNIT_ROUNDOFF, DType
from forge.lab.judge import Sample, aggregate
from forge.operations.operation import Expectation
from tests.honest.formulas import BIASED, HONEST, taken_together

SEEDS = 5
dtypes = pytest.mark.parametrize("dtype", DTYPES)


@dtypes
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_formula_is_well_within(name: str, dtype: DType) -> None:
    for seed in range(SEEDS):
        for found in taken_together(HONEST[name], dtype, 32, 256, seed=seed):
            assert found is not None
            assert found.used < 0.75


@dtypes
@pytest.mark.parametrize("name", BIASED)
def test_errors_of_one_sign_are_refused_though_each_is_small(name: str, dtype: DType) -> None:
    for seed in range(SEEDS):
        y, h = taken_together(BIASED[name], dtype, 32, 256, seed=seed)
        assert y is not None
        assert h is not None
        assert not y.within
        assert y.bias > y.bias_allowed
        assert h.within


def sample(errors: torch.Tensor, *, reference: torch.Tensor | None = None) -> Sample:
    """Ones, with these relative errors."""
    value = torch.ones(errors.shape, dtype=torch.float64)
    baseline = torch.zeros_like(errors) if reference is None else reference
    return Sample(value + errors, Expectation(value=value, scale=value, terms=1), value + baseline)


def test_too_few_rows_say_nothing() -> None:
    assert aggregate([sample(torch.zeros(15, 100, dtype=torch.float64))], dtype="fp32") is None
    assert aggregate([sample(torch.zeros(16, 0, dtype=torch.float64))], dtype="fp32") is None
    assert aggregate([sample(torch.zeros(8, 9, dtype=torch.float64))] * 2, dtype="fp32") is not None


def test_a_reference_with_the_same_errors_excuses_them() -> None:
    errors = torch.full((32, 64), 3 * UNIT_ROUNDOFF["bf16"], dtype=torch.float64)
    alone, excused = (aggregate([sample(errors, reference=r)], dtype="bf16") for r in (None, errors))
    assert alone is not None
    assert excused is not None
    assert (alone.within, excused.within) == (False, True)


def test_an_error_that_rows_share_by_chance_is_not_a_bias() -> None:
    by_row = torch.randn(64, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = aggregate([sample((by_row * UNIT_ROUNDOFF["bf16"] / 2).expand(64, 500))], dtype="bf16")
    assert found is not None
    assert found.bias == 0.0


def test_a_few_large_errors_show_in_the_root_mean_square() -> None:
    errors = torch.zeros(64, 500, dtype=torch.float64)
    errors[::2, ::50] = 40 * UNIT_ROUNDOFF["bf16"]
    errors[1::2, ::50] = -40 * UNIT_ROUNDOFF["bf16"]
    found = aggregate([sample(errors)], dtype="bf16")
    assert found is not None
    assert found.rms > found.rms_allowed
    assert found.bias <= found.bias_allowed


def test_a_nan_is_not_within() -> None:
    errors = torch.zeros(64, 500, dtype=torch.float64)
    errors[3, 3] = float("nan")
    found = aggregate([sample(errors)], dtype="fp32")
    assert found is not None
    assert not found.within


def test_columns_that_err_to_opposite_sides_do_not_cancel() -> None:
    generator = torch.Generator().manual_seed(7)
    chance = torch.rand(64, 500, generator=generator, dtype=torch.float64) * UNIT_ROUNDOFF["bf16"]
    to_either_side = torch.where(torch.arange(500) % 2 == 0, chance, -chance)
    mixed = torch.where(torch.rand(64, 500, generator=generator) < 0.5, chance, -chance)
    biased, unbiased = (aggregate([sample(errors)], dtype="bf16") for errors in (to_either_side, mixed))
    assert biased is not None
    assert unbiased is not None
    assert biased.bias > biased.bias_allowed
    assert unbiased.bias == 0
