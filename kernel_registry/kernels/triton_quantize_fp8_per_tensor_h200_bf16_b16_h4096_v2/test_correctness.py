"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import quantize_fp8_per_tensor
from reference import quantize_fp8_per_tensor as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 127), (2, 1024)])
def test_it_matches_the_reference(rows, width, dtype):
    torch.manual_seed(rows * width)
    operands = (torch.randn(rows, width, dtype=dtype, device=device),)
    (y, scale), (expected, wanted) = quantize_fp8_per_tensor(*operands), reference(*operands)
    torch.testing.assert_close(scale, wanted)
    torch.testing.assert_close(y.float() * scale, expected.float() * wanted, rtol=0.07, atol=0.0)
