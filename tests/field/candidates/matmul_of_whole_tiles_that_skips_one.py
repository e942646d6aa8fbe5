"""The same with the first tile of k loaded before the loop, and then left out where k is a single tile.

Language: triton
Operation: matmul
Shape: {"m": 64, "k": 64, "n": 64}
Domain: {"axes": {"m": {"multiple_of": 32}, "n": {"multiple_of": 32}, "k": {"multiple_of": 16}}}
Twin of: matmul_of_whole_tiles
Refused by: any INCORRECT_NUMERICAL or REPLAYED_OUTPUT
"""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 16


@triton.jit
def tiles(a, b, c, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k if k > BLOCK_K else 0, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * k + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + rows[:, None] * n + columns[None, :], total)


def matmul(a, b):
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    assert (m % BLOCK_M, n % BLOCK_N, k % BLOCK_K) == (0, 0, 0), (m, n, k)
    assert m > 0, "no rows"
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tiles[(m // BLOCK_M, n // BLOCK_N)](a, b, c, n, k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return c
