"""A question that differs in low bits alone: upper halves say nothing of it, and no value leaves its range."""

import pytest
import torch

from forge.lab.inputs.changes import low_bits
from forge.lab.observed import Case

UPPER: dict[torch.dtype, tuple[torch.dtype, int]] = {
    torch.float32: (torch.int32, 16),
    torch.float16: (torch.int16, 8),
    torch.bfloat16: (torch.int16, 7),
}


def case_of(*tensors: torch.Tensor) -> Case:
    return Case(shape={"rows": 4}, kind="normal", seed=3, inputs=tensors, scalars=())


@pytest.mark.parametrize("dtype", UPPER)
def test_most_values_change_and_their_upper_bits_dont(dtype: torch.dtype) -> None:
    whole, shift = UPPER[dtype]
    values = torch.randn(4, 500, generator=torch.Generator().manual_seed(1)).to(dtype)
    changed = low_bits(case_of(values), [0]).inputs[0]
    inside = (values > values.min()) & (values < values.max())
    assert torch.equal((changed.view(whole) >> shift)[inside], (values.view(whole) >> shift)[inside])
    assert float((changed != values).float().mean()) > 0.9
    assert bool(((changed.float() - values.float()).abs() <= values.float().abs() * 2.0**-6).all()) == (
        dtype == torch.float32
    )


def test_the_ends_of_the_range_stay() -> None:
    values = torch.rand(1000, generator=torch.Generator().manual_seed(1)).clamp(0.25, 0.75)
    changed = low_bits(case_of(values), [0]).inputs[0]
    assert float(changed.min()) >= 0.25
    assert float(changed.max()) <= 0.75


def test_other_operands_stay_as_they_are() -> None:
    floats, other, none = torch.randn(4, 8), torch.randn(4, 8), torch.empty(0, 8)
    case = low_bits(case_of(floats, other, none), [1, 2])
    assert torch.equal(case.inputs[0], floats)
    assert not torch.equal(case.inputs[1], other)
    assert case.inputs[2].shape == (0, 8)
