"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import attention_decode
from reference import attention_decode as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(("tokens", "length", "heads", "group", "width"), [(1, 1, 1, 1, 16), (2, 300, 2, 3, 40)])
def test_it_matches_the_reference(tokens, length, heads, group, width, dtype):
    torch.manual_seed(tokens * length)
    operands = (
        torch.randn(tokens, heads, group, width, dtype=dtype, device=device),
        torch.randn(tokens, length, heads, width, dtype=dtype, device=device),
        torch.randn(tokens, length, heads, width, dtype=dtype, device=device),
    )
    torch.testing.assert_close(attention_decode(*operands), reference(*operands), rtol=2e-3, atol=2e-3)
