"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import rmsnorm_strided
from reference import rmsnorm_strided as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 127), (2, 1024)])
def test_it_matches_the_reference(rows, width, dtype):
    torch.manual_seed(rows * width)
    operands = (
        torch.randn(rows, 3 * width, dtype=dtype, device=device),
        torch.randn(width, dtype=dtype, device=device),
        1e-6,
    )
    torch.testing.assert_close(rmsnorm_strided(*operands), reference(*operands))
