"""A value that is memory's filler, or was lost beside 1, is called that; others have as many digits as fp32 has."""

import pytest
import torch

from forge.lab.calls.loaded_guest import FILLING
from forge.lab.calls.refusal import UNWRITTEN, UNWRITTEN_BYTE, _seen


def test_new_memory_has_the_complement_of_the_byte_that_is_asked_for() -> None:
    assert UNWRITTEN_BYTE == ~FILLING & 0xFF


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_unwritten_element_of_each_type_is_known(dtype: torch.dtype) -> None:
    raw = torch.full((8,), UNWRITTEN_BYTE, dtype=torch.uint8)
    assert raw.view(dtype)[0].item() in UNWRITTEN


def test_a_wrong_value_has_nine_digits() -> None:
    assert _seen(0.9086549878120422, 0.5, "fp32") == "0.908654988"
    assert _seen(float("nan"), 0.5, "fp32") == "nan"
    assert _seen(1.5365221879119872e16, 0.5, "fp32") == "1.54e+16, the filler of memory that was never written"


def test_a_small_result_that_was_lost_beside_one_is_called_that() -> None:
    x = torch.tensor(0.0013034938)
    right = float(x.double().tanh())
    said = [
        _seen(float(got), right, "fp32")
        for got in (1 - 2 / (torch.exp(2 * x) + 1), 2 * torch.sigmoid(2 * x) - 1, right + 1e-7, 0.0)
    ]
    assert ["expm1" in one for one in said] == [True, True, False, False]
    assert "expm1" not in _seen(float(x.half()), right, "fp16")
