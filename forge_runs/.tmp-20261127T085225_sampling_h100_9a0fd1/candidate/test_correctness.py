"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import sampling
from reference import sampling as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (7, 127), (9, 1000)])
def test_it_matches_the_reference(rows, width, dtype):
    torch.manual_seed(rows * width)
    operands = (
        torch.randn(rows, width, dtype=dtype, device=device),
        torch.rand(rows, device=device) + 0.5,
        torch.arange(rows, dtype=torch.int32, device=device) * 3,
        torch.linspace(0.3, 1.0, rows, device=device),
        torch.rand(rows, device=device),
    )
    assert torch.equal(sampling(*operands), reference(*operands))
