"""Split-k with atomic sums, tuned: the tuner clears the result before each trial, and a model prunes the settings.

Language: triton
Operation: matmul
Shape: {"m": 16, "k": 256, "n": 64}
Accepted: reset_to_zero names the result that each trial adds to.
"""

import torch
import triton
import triton.language as tl


def get_configs():
    return [
        triton.Config({"BLOCK_M": bm, "BLOCK_N": bn, "BLOCK_K": bk, "SPLIT_K": sk}, num_warps=w, num_stages=s)
        for bm, bn, bk, sk, w, s in [
            (16, 32, 32, 1, 4, 2),
            (16, 32, 32, 4, 4, 3),
            (32, 32, 64, 2, 4, 3),
            (128, 256, 64, 1, 8, 3),
        ]
    ]


def prune(configs, named_args, **kwargs):
    m = named_args["M"]
    return [
        c for c in configs if c.kwargs["BLOCK_M"] <= max(16, triton.next_power_of_2(m)) and c.kwargs["BLOCK_M"] <= 64
    ]


def estimate(M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, SPLIT_K, num_warps, num_stages, **_):
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N) * SPLIT_K
    return tiles / max(1, num_warps)


@triton.autotune(
    configs=get_configs(),
    key=["M", "N", "K"],
    reset_to_zero=["c_ptr"],
    prune_configs_by={"early_config_prune": prune, "perf_model": estimate, "top_k": 2},
)
@triton.heuristics({"EVEN_K": lambda args: args["K"] % (args["BLOCK_K"] * args["SPLIT_K"]) == 0})
@triton.jit
def split_k_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    pid = tl.program_id(0)
    pid_z = tl.program_id(1)
    grid_n = tl.cdiv(N, BLOCK_N)
    rm = (pid // grid_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = (pid % grid_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = pid_z * BLOCK_K + tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K * SPLIT_K)):
        kk = rk + k * BLOCK_K * SPLIT_K
        a_at = a_ptr + rm[:, None].to(tl.int64) * stride_am + kk[None, :] * stride_ak
        b_at = b_ptr + kk[:, None].to(tl.int64) * stride_bk + rn[None, :] * stride_bn
        if EVEN_K:
            a = tl.load(a_at, mask=rm[:, None] < M, other=0.0)
            b = tl.load(b_at, mask=rn[None, :] < N, other=0.0)
        else:
            a = tl.load(a_at, mask=(rm[:, None] < M) & (kk[None, :] < K), other=0.0)
            b = tl.load(b_at, mask=(kk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c = c_ptr + rm[:, None].to(tl.int64) * stride_cm + rn[None, :] * stride_cn
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    if SPLIT_K == 1:
        tl.store(c, acc, mask=mask)
    else:
        tl.atomic_add(c, acc, mask=mask, sem="relaxed")


def matmul(x, w):
    M, K = x.shape
    K, N = w.shape
    c = torch.zeros((M, N), device=x.device, dtype=torch.float32)
    if M:

        def grid(META):
            return (triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"]), META["SPLIT_K"])

        split_k_kernel[grid](x, w, c, M, N, K, *x.stride(), *w.stride(), *c.stride())
    return c.to(x.dtype)
