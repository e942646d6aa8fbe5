"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import cross_entropy
from reference import cross_entropy as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("vocab_size", [1, 127, 1000, 20000])
def test_it_matches_the_reference(tokens, vocab_size):
    torch.manual_seed(tokens * vocab_size)
    logits = torch.randn(tokens, vocab_size, device=device)
    labels = torch.randint(vocab_size, (tokens,), device=device)
    torch.testing.assert_close(cross_entropy(logits, labels), reference(logits, labels), rtol=1e-5, atol=1e-5)
