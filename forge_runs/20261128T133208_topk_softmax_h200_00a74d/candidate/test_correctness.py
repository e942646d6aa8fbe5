"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import topk_softmax
from reference import topk_softmax as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("experts", [1, 9, 128])
def test_it_matches_the_reference(tokens, experts):
    torch.manual_seed(tokens * experts)
    logits = torch.randn(tokens, experts, device=device)
    (weights, indices), (expected, chosen) = topk_softmax(logits), reference(logits)
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(indices, chosen)
