"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import moe_fused_gate
from reference import moe_fused_gate as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32])
@pytest.mark.parametrize(("tokens", "experts"), [(1, 1), (3, 127), (2, 256)])
def test_it_matches_the_reference(tokens, experts, dtype):
    torch.manual_seed(tokens * experts)
    operands = (
        torch.randn(tokens, experts, dtype=dtype, device=device),
        torch.randn(experts, device=device) / 8,
        2.5,
    )
    (weights, indices), (expected, wanted) = moe_fused_gate(*operands), reference(*operands)
    torch.testing.assert_close(weights, expected)
    assert torch.equal(indices, wanted)
