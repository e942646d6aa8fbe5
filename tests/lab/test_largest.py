"""Where values are largest is found as by torch, but sooner."""

import math

import pytest
import torch

from forge.lab.largest import first_largest

SIZES = ((7,), (5, 9), (3, 4, 1000), (2, 70001))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int32], ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_first_largest_is_torchs_own(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(len(sizes))
    values = torch.randint(-3, 4, sizes, generator=generator).double()  # so that many are equal
    if dtype.is_floating_point:
        values = values.masked_fill(torch.rand(sizes, generator=generator) < 0.2, -math.inf)
        some_rows = torch.rand((*sizes[:-1], 1), generator=generator) < 0.5
        values = values.masked_fill((torch.rand(sizes, generator=generator) < 0.01) & some_rows, math.nan)
    found = first_largest(values.to(dtype))
    assert found.dtype == torch.int64
    assert torch.equal(found, values.to(dtype).argmax(-1))


def test_the_first_of_a_mask_is_its_first_place() -> None:
    assert int(first_largest(torch.tensor([False, True, True]))) == 1
