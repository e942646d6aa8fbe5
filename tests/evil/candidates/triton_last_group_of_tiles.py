"""Walks tiles in groups of eight, and forgets that the last group may have fewer: wrong beyond eight tiles of rows.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
Operation: matmul
Shape: {"m": 32, "k": 64, "n": 64}
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _product(x, w, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tile = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    in_group = GROUP * tiles_n
    first = tile // in_group * GROUP
    size = min(tiles_m, GROUP)
    tile_m = first + tile % in_group % size
    tile_n = tile % in_group // size
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        terms = start + tl.arange(0, BK)
        a = tl.load(
            x + rows[:, None] * k + terms[None, :], mask=(rows[:, None] < m) & (terms[None, :] < k), other=0.0
        )
        b = tl.load(
            w + terms[:, None] * n + columns[None, :], mask=(terms[:, None] < k) & (columns[None, :] < n), other=0.0
        )
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(y + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul(x, w):
    (m, k), n = x.shape, w.shape[1]
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m:
        _product[(triton.cdiv(m, 32) * triton.cdiv(n, 32),)](x, w, y, m, n, k, BM=32, BN=32, BK=32, GROUP=8)
    return y
