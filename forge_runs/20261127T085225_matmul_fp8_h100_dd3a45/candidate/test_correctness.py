"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import matmul_fp8
from reference import matmul_fp8 as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 16, 16), (3, 128, 48), (20, 64, 32)])
def test_it_matches_the_reference(m, k, n, dtype):
    torch.manual_seed(m * k)
    operands = (
        torch.randn(m, k, device=device).to(dtype),
        torch.randn(n, k, device=device).to(dtype),
        torch.rand(m, device=device) + 0.5,
        torch.rand(n, device=device) + 0.5,
    )
    torch.testing.assert_close(matmul_fp8(*operands), reference(*operands), rtol=2e-2, atol=2e-2)
