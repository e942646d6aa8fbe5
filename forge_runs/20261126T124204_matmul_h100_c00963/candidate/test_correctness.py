"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import matmul
from reference import matmul as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("m", [1, 20])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (64, 65), (129, 7)])
def test_it_matches_the_reference(m, k, n):
    torch.manual_seed(m * k * n)
    x, w = torch.randn(m, k, device=device), torch.randn(k, n, device=device)
    torch.testing.assert_close(matmul(x, w), reference(x, w), rtol=1e-4, atol=1e-4)
