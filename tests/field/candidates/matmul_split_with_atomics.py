"""A product of whole tiles that is split along k, whose parts are added atomically into zeros.

Language: triton
Operation: matmul
Shape: {"m": 16, "k": 64, "n": 16}
Domain: {"axes": {"m": {"values": [16, 32]}, "k": {"values": [64, 128]}, "n": {"values": [16, 48]}}}
Accepted: the order of the parts moves a sum by less than its bound.
"""

import torch
import triton
import triton.language as tl

TILE, PARTS = 16, 4


@triton.jit
def _partial(x, w, out, m, n, k, part_stride, TILE: tl.constexpr, EACH: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    part = tl.program_id(2).to(tl.int64)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for step in range(EACH):
        terms = (part * EACH + step) * TILE + tl.arange(0, TILE)
        a = tl.load(x + rows[:, None] * k + terms[None, :])
        b = tl.load(w + terms[:, None] * n + columns[None, :])
        total = tl.dot(a, b, total, input_precision="ieee")
    at = rows[:, None] * n + columns[None, :]
    tl.atomic_add(out + at, total)


def matmul(x, w):
    (m, k), n = x.shape, w.shape[1]
    if m % TILE or n % TILE or k % (TILE * PARTS):
        raise ValueError(f"{m}, {k}, {n}: expected multiples of {TILE}, {TILE * PARTS} and {TILE}")
    y = torch.zeros((m, n), device=x.device, dtype=torch.float32)
    if m:
        grid = (m // TILE, n // TILE, PARTS)
        _partial[grid](x, w, y, m, n, k, 0, TILE=TILE, EACH=k // (TILE * PARTS))
    return y
