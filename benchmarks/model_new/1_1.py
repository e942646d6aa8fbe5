"""A product of two matrices in tiles, in fp32."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def _tile(a, b, y, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    columns = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, k, K):
        terms = start + tl.arange(0, K)
        left = (rows < m)[:, None] & (terms < k)[None, :]
        right = (terms < k)[:, None] & (columns < n)[None, :]
        h = tl.load(a + rows[:, None] * k + terms[None, :], mask=left, other=0.0)
        w = tl.load(b + terms[:, None].to(tl.int64) * n + columns[None, :], mask=right, other=0.0)
        total = tl.dot(h, w, total, input_precision="ieee")
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(y + rows[:, None] * n + columns[None, :], total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        (m, k), n = A.shape, B.shape[1]
        y = torch.empty(m, n, dtype=A.dtype, device=A.device)
        if y.numel():
            _tile[(triton.cdiv(m, 64), triton.cdiv(n, 64))](A, B, y, m, n, k, M=64, N=64, K=32, num_warps=4)
        return y
