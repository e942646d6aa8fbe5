"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import topk_per_row
from reference import topk_per_row as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("vocab_size", [1, 9, 128, 5000])
def test_it_matches_the_reference(batch, vocab_size):
    torch.manual_seed(batch * vocab_size)
    x = torch.randn(batch, vocab_size, device=device)
    (values, indices), (expected, chosen) = topk_per_row(x), reference(x)
    assert torch.equal(values, expected)
    assert torch.equal(indices, chosen)
