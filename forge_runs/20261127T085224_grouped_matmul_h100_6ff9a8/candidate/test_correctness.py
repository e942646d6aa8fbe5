"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import grouped_matmul
from reference import grouped_matmul as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float16])
@pytest.mark.parametrize(("tokens", "k", "n", "groups"), [(1, 1, 1, 1), (7, 127, 17, 3), (40, 64, 40, 2)])
def test_it_matches_the_reference(tokens, k, n, groups, dtype):
    torch.manual_seed(tokens * k)
    operands = (
        torch.randn(tokens, k, dtype=dtype, device=device),
        torch.randn(groups, k, n, dtype=dtype, device=device),
        torch.full((groups,), tokens // groups, dtype=torch.int32, device=device),
    )
    torch.testing.assert_close(grouped_matmul(*operands), reference(*operands), rtol=2e-3, atol=2e-3)
