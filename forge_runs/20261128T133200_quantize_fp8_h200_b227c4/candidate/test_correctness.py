"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import quantize_fp8
from reference import quantize_fp8 as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("hidden_size", [1, 127, 1000])
def test_it_matches_the_reference(batch, hidden_size):
    torch.manual_seed(batch * hidden_size)
    x = torch.randn(batch, hidden_size, device=device)
    (y, scale), (expected, expected_scale) = quantize_fp8(x), reference(x)
    torch.testing.assert_close(scale, expected_scale, rtol=1e-6, atol=0)
    torch.testing.assert_close(y.float(), expected.float(), rtol=0.13, atol=2**-9)
    assert (y.float() != expected.float()).float().mean() < 0.01
