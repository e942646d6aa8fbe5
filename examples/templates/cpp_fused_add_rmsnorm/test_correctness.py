"""The author's own tests."""

import pytest
import torch
from kernel import fused_add_rmsnorm
from reference import fused_add_rmsnorm as reference


@pytest.mark.parametrize("batch", [1, 2, 16])
@pytest.mark.parametrize("hidden_size", [1, 127, 1024, 4097])
def test_it_matches_the_reference(batch, hidden_size):
    torch.manual_seed(batch * hidden_size)
    x, residual, weight = torch.randn(batch, hidden_size), torch.randn(batch, hidden_size), torch.randn(hidden_size)
    for got, expected in zip(fused_add_rmsnorm(x, residual, weight, 1e-6), reference(x, residual, weight, 1e-6)):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
