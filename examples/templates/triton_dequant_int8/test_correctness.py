"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import dequant_int8
from reference import dequant_int8 as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(batch, hidden_size):
    torch.manual_seed(batch * hidden_size)
    x = torch.randint(-128, 128, (batch, hidden_size), dtype=torch.int8, device=device)
    return x, torch.rand(batch, device=device) / 128


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("hidden_size", [1, 127, 1000])
def test_it_matches_the_reference(batch, hidden_size):
    operands = drawn(batch, hidden_size)
    torch.testing.assert_close(dequant_int8(*operands), reference(*operands), rtol=1e-6, atol=1e-6)
