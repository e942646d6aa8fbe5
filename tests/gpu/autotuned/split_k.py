"""A matmul whose terms are split over programs that add atomically; its tuner sets the sum to zero before each run.

Accepted: reset_to_zero makes the call that tunes right
Plan: no launch plan (foreign_kernel): the cast to bf16 is a kernel of torch
Operation: matmul
Dtype: bf16
Shape: {"m": 512, "k": 512, "n": 512}
"""

import torch
import triton
import triton.language as tl

SIZES = ((128, 256, 64, 8), (64, 256, 32, 4), (128, 128, 32, 4), (128, 64, 32, 4), (64, 128, 32, 4), (128, 32, 32, 4))
CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8, "PARTS": 4}, num_warps=warps, num_stages=3)
    for m, n, k, warps in (*SIZES, (64, 32, 32, 2), (32, 64, 32, 2))
]


def as_large_as_needed(configs, named, **_):
    return [one for one in configs if one.kwargs["BLOCK_M"] <= max(64, 2 * named["m"])]


@triton.autotune(
    CONFIGS, key=["m", "n", "k"], reset_to_zero=["y"], prune_configs_by={"early_config_prune": as_large_as_needed}
)
@triton.jit
def _tile(
    x,
    w,
    y,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    PARTS: tl.constexpr,
):
    program, part = tl.program_id(0), tl.program_id(1)
    down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    band = program // (GROUP * across)
    height = min(down - band * GROUP, GROUP)
    within = program % (GROUP * across)
    rows = (band * GROUP + within % height).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (within // height).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    terms = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(part * BLOCK_K, k, PARTS * BLOCK_K):
        inside = start + terms < k
        at_x = rows[:, None] * k + (start + terms)[None, :]
        at_w = (start + terms).to(tl.int64)[:, None] * n + columns[None, :]
        h = tl.load(x + at_x, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        weights = tl.load(w + at_w, mask=inside[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(h, weights, total, input_precision="ieee")
    at = rows[:, None] * n + columns[None, :]
    tl.atomic_add(y + at, total, mask=(rows < m)[:, None] & (columns < n)[None, :])


def matmul(x, w):
    (m, k), n = x.shape, w.shape[1]
    y = torch.zeros(m, n, dtype=torch.float32, device=x.device)
    if y.numel():
        _tile[lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]), meta["PARTS"])](
            x, w, y, m, n, k
        )
    return y.to(x.dtype)
