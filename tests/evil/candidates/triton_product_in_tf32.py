"""leaves the product's precision at its default, which is TF32 on a GPU.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: F1
Language: triton
Operation: matmul
Shape: {"m": 8, "k": 64, "n": 32}
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, w, y, m, k, n, BM: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        a = tl.load(x + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        b = tl.load(w + at[:, None] * n + cols[None, :], mask=(at[:, None] < k) & (cols[None, :] < n), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(y + rows[:, None] * n + cols[None, :], total, mask=(rows[:, None] < m) & (cols[None, :] < n))


def matmul(x, w):
    (m, k), n = x.shape, w.shape[1]
    y = torch.empty(m, n, device=x.device, dtype=x.dtype)
    if m:
        _kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](x, w, y, m, k, n, BM=32, BK=64, BN=32)
    return y
