"""Matrix product of fp8 operands in tiles; the scales of rows and columns multiply the sums in registers.

Programs are numbered so that a few rows of tiles share the columns of w while those are in the L2 cache, as in
Triton's tutorial on matrix multiplication. The sums of 128 products leave the tensor cores, which add
those of fp8 in few bits, and are added in fp32 registers.
"""

import torch
import triton
import triton.language as tl

TOGETHER = 8


@triton.jit
def _tile(
    x,
    w,
    x_scale,
    w_scale,
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
        at_w = columns[None, :] * k + (start + terms)[:, None]
        h = tl.load(x + at_x, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        weights = tl.load(w + at_w, mask=inside[:, None] & (columns < n)[None, :], other=0.0)
        total += tl.dot(h, weights, max_num_imprecise_acc=BLOCK_K)
    down_scales = tl.load(x_scale + rows, mask=rows < m, other=0.0)
    across_scales = tl.load(w_scale + columns, mask=columns < n, other=0.0)
    total = total * down_scales[:, None] * across_scales[None, :]
    at = rows[:, None] * n + columns[None, :]
    tl.store(y + at, total.to(y.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


def _blocks(m):
    """Tiles of few rows where there are few, so that more programs read w at the same time."""
    if m <= 16:
        return 16, 32, 128, 4
    return (64, 64, 128, 4) if m <= 64 else (128, 128, 128, 8)


def matmul_fp8(x, w, x_scale, w_scale):
    """x [m, k], w [n, k] in fp8 e4m3, x_scale [m], w_scale [n] in fp32 -> y [m, n] in bf16."""
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty(m, n, dtype=torch.bfloat16, device=x.device)
    if y.numel():
        block_m, block_n, block_k, warps = _blocks(m)
        programs = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        _tile[(programs,)](
            x,
            w,
            x_scale,
            w_scale,
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
