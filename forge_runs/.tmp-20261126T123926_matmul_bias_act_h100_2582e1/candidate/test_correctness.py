"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import matmul_bias_act
from reference import matmul_bias_act as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float16])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 127, 17), (20, 64, 40)])
def test_it_matches_the_reference(m, k, n, dtype):
    torch.manual_seed(m * k)
    operands = (
        torch.randn(m, k, dtype=dtype, device=device),
        torch.randn(k, n, dtype=dtype, device=device),
        torch.randn(n, dtype=dtype, device=device),
    )
    torch.testing.assert_close(matmul_bias_act(*operands), reference(*operands), rtol=2e-3, atol=2e-3)
