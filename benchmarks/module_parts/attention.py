import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attention(q, k, v, y, seq, heads, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    pair = tl.program_id(1)
    base = pair * seq * D
    inside = tl.arange(0, D)
    asked = tl.load(q + base + rows[:, None] * D + inside[None, :], mask=rows[:, None] < seq, other=0.0)
    highest = tl.full((M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((M,), dtype=tl.float32)
    mixed = tl.zeros((M, D), dtype=tl.float32)
    last = tl.minimum((tl.program_id(0) + 1) * M, seq)
    for start in range(0, last, N):
        keys = start + tl.arange(0, N)
        key = tl.load(k + base + keys[None, :] * D + inside[:, None], mask=keys[None, :] < seq, other=0.0)
        score = tl.dot(asked, key, input_precision="ieee") * scale
        score = tl.where((keys[None, :] <= rows[:, None]) & (keys[None, :] < seq), score, float("-inf"))
        new = tl.maximum(highest, tl.max(score, 1))
        weight = tl.exp(score - new[:, None])
        old = tl.exp(highest - new)
        value = tl.load(v + base + keys[:, None] * D + inside[None, :], mask=keys[:, None] < seq, other=0.0)
        total = total * old + tl.sum(weight, 1)
        mixed = mixed * old[:, None] + tl.dot(weight, value, input_precision="ieee")
        highest = new
    place = ((pair // heads) * seq + rows)[:, None] * (heads * D) + (pair % heads) * D + inside[None, :]
    tl.store(y + place, mixed / total[:, None], mask=rows[:, None] < seq)


def attention(in_0, in_1, in_2):
    batch, heads, seq, size = in_0.shape
    made = torch.empty((batch, seq, heads * size), dtype=in_0.dtype, device=in_0.device)
    _attention[(triton.cdiv(seq, 32), batch * heads)](
        in_0, in_1, in_2, made, seq, heads, 1.0 / math.sqrt(size), M=32, N=32, D=size
    )
    return made
