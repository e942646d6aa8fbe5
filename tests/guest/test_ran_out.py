"""Memory that ran out is told from other failures, by the words of the library that hands it out."""

import pytest
import torch

from forge.guest.memory import ran_out


class Shy(Exception):
    def __str__(self) -> str:
        raise ValueError("ask somebody else")


def test_torch_says_that_memory_ran_out() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**48, dtype=torch.float64)
    assert ran_out(raised.value)


@pytest.mark.parametrize(
    ("error", "out"),
    [
        (MemoryError(), True),
        (OSError(12, "Cannot allocate memory"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at ..."), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (Shy(), False),
    ],
)
def test_others_by_their_words(error: BaseException, out: bool) -> None:
    assert ran_out(error) is out
