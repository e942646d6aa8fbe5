"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import gated_rmsnorm_quant
from reference import gated_rmsnorm_quant as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(batch, hidden_size):
    torch.manual_seed(batch * hidden_size)
    x, gate = (torch.randn(batch, hidden_size, device=device) for _ in range(2))
    return x, gate, torch.randn(hidden_size, device=device), 1e-6


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("hidden_size", [1, 127, 1000])
def test_it_matches_the_reference(batch, hidden_size):
    operands = drawn(batch, hidden_size)
    (y, scale), (expected, expected_scale) = gated_rmsnorm_quant(*operands), reference(*operands)
    torch.testing.assert_close(scale, expected_scale, rtol=1e-5, atol=0)
    assert (y.int() - expected.int()).abs().max() <= 1
    assert (y != expected).float().mean() < 0.01
