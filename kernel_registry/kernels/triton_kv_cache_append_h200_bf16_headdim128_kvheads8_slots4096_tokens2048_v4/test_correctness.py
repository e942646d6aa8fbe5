"""The author's own tests; without a GPU, Triton's interpreter runs them (TRITON_INTERPRET=1)."""

import pytest
import torch
from kernel import kv_cache_append
from reference import kv_cache_append as reference

device = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(("tokens", "heads", "dim"), [(1, 1, 1), (5, 3, 33), (4, 2, 64)])
def test_it_matches_the_reference(tokens, heads, dim, dtype):
    torch.manual_seed(tokens * dim)
    key, value = (torch.randn(tokens, heads, dim, dtype=dtype, device=device) for _ in range(2))
    before = [torch.randn(2 * tokens + 1, heads, dim, dtype=dtype, device=device) for _ in range(2)]
    slots = torch.randperm(2 * tokens + 1, device=device)[:tokens]
    slots[::3] = -1
    expected, got = ([one.clone() for one in before] for _ in range(2))
    reference(key, value, *expected, slots)
    kv_cache_append(key, value, *got, slots)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
