"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import attention_prefill
from reference import attention_prefill as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    ("tokens", "length", "heads", "group", "width"), [(1, 1, 1, 1, 16), (70, 150, 2, 3, 40), (9, 5, 1, 2, 16)]
)
def test_it_matches_the_reference(tokens, length, heads, group, width, dtype):
    torch.manual_seed(tokens * length)
    operands = (
        torch.randn(tokens, heads, group, width, dtype=dtype, device=device),
        torch.randn(length, heads, width, dtype=dtype, device=device),
        torch.randn(length, heads, width, dtype=dtype, device=device),
    )
    torch.testing.assert_close(attention_prefill(*operands), reference(*operands).nan_to_num(), rtol=2e-3, atol=2e-3)
