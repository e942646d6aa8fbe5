"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import dequant_int4
from reference import dequant_int4 as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(batch, pairs):
    torch.manual_seed(batch * pairs)
    packed = torch.randint(256, (batch, pairs), dtype=torch.uint8, device=device)
    groups = -(-pairs // 64)
    zero = torch.randint(16, (batch, groups), device=device).float()
    return packed, torch.rand(batch, groups, device=device) / 16, zero


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("pairs", [1, 127, 1000])
def test_it_matches_the_reference(batch, pairs):
    operands = drawn(batch, pairs)
    torch.testing.assert_close(dequant_int4(*operands), reference(*operands), rtol=1e-6, atol=1e-6)
