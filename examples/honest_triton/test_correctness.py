"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import fused_add_rmsnorm
from reference import fused_add_rmsnorm as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("hidden_size", [1, 127, 1000])
def test_it_matches_the_reference(batch, hidden_size):
    torch.manual_seed(batch * hidden_size)
    rows = [torch.randn(batch, hidden_size, device=device) for _ in range(2)]
    weight = torch.randn(hidden_size, device=device)
    for got, expected in zip(fused_add_rmsnorm(*rows, weight, 1e-6), reference(*rows, weight, 1e-6)):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
