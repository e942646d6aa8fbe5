"""Matrix product in tiles on tensor cores, sums in fp32 registers; tiles of neighbouring rows run side by side.

Programs are numbered so that a few rows of tiles share the columns of w while those are in the L2 cache, as in
Triton's tutorial on matrix multiplication. Products of fp32 operands are not rounded to TF32.
"""

import torch
import triton
import triton.language as tl

TOGETHER = 8


@triton.jit
def _tile(
    x,
    w,
    y,
    m,
    k,
    n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    TOGETHER: tl.constexpr,
):
    program = tl.program_id(0)
    down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    band = program // (TOGETHER * across)
    height = min(down - band * TOGETHER, TOGETHER)
    within = program % (TOGETHER * across)
    rows = (band * TOGETHER + within % height).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (within // height).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    terms = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        inside = start + terms < k
        at_x = rows[:, None] * k + (start + terms)[None, :]
        at_w = (start + terms).to(tl.int64)[:, None] * n + columns[None, :]
        h = tl.load(x + at_x, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        weights = tl.load(w + at_w, mask=inside[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(h, weights, total, input_precision="ieee")
    at = rows[:, None] * n + columns[None, :]
    tl.store(y + at, total.to(y.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


def _blocks(m, narrow):
    """Tiles of few rows where there are few, so that more programs read w at the same time."""
    if not narrow:
        return (16 if m <= 16 else 64), 64, 32, 4
    if m <= 16:
        return 16, 32, 128, 4
    return (64, 64, 64, 4) if m <= 64 else (128, 128, 64, 8)


def matmul(x, w):
    """x [m, k], w [k, n] -> y [m, n] in the operands' type."""
    (m, k), n = x.shape, w.shape[1]
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    if y.numel():
        block_m, block_n, block_k, warps = _blocks(m, x.dtype != torch.float32)
        programs = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        _tile[(programs,)](
            x,
            w,
            y,
            m,
            k,
            n,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            TOGETHER=TOGETHER,
            num_warps=warps,
            num_stages=3,
        )
    return y
