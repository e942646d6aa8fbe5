"""A tutorial's matmul without masks, for multiples of 128, 128 and 64, and fewer than 2^31 elements; it asserts both.

Language: triton
Operation: matmul
Dtype: bf16
Shape: {"m": 512, "k": 1024, "n": 1024}
Domain: {"axes": {"m": {"multiple_of": 128}, "n": {"multiple_of": 128}, "k": {"multiple_of": 64}}, "most_elements": 2147483647}
Accepted: every size of its domain is made of whole tiles.
"""  # noqa: E501 (one line for the domain)

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 64


@triton.jit
def tiles(a, b, c, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * k + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16))


def matmul(a, b):
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    assert (m % BLOCK_M, n % BLOCK_N, k % BLOCK_K) == (0, 0, 0), (m, n, k)
    assert m > 0, "no rows"
    assert max(m * k, k * n, m * n) < 2**31, "offsets have 32 bits"
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tiles[(m // BLOCK_M, n // BLOCK_N)](a, b, c, n, k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return c
