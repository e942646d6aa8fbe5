"""An answer that a candidate gives again is recognised; zeros alone tell nothing of what it remembers."""

import pytest
import torch

from forge.lab.calls.answers import Answered

VALUES = torch.tensor([1.0, 0.0, -2.0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn, torch.int64])
def test_an_answer_that_was_given_before_is_held(dtype: torch.dtype) -> None:
    answered = Answered()
    answered.keep((VALUES.to(dtype),))
    assert answered.holds((VALUES.to(dtype),))
    assert not answered.holds((2 * VALUES.to(torch.float32)).to(dtype).unsqueeze(0).unbind(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn, torch.int64])
def test_zeros_are_no_earlier_answer_since_a_kernel_that_writes_nothing_gives_them_too(dtype: torch.dtype) -> None:
    zeros = torch.zeros(3).to(dtype)
    answered = Answered()
    answered.keep((zeros,))
    assert not answered.holds((zeros,))


def test_zeros_beside_an_earlier_answer_are_held() -> None:
    answered = Answered()
    answered.keep((torch.zeros(3), VALUES))
    assert answered.holds((torch.zeros(3), VALUES))
