import torch
import triton
import triton.language as tl

HEADS = 8


@triton.jit
def _qkv(x, w, b, q, k, v, m, seq, width, heads, M: tl.constexpr, D: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    which, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    inside = tl.arange(0, D)
    columns = (which * heads + head) * D + inside
    total = tl.zeros((M, D), dtype=tl.float32)
    for start in range(0, width, K):
        inner = start + tl.arange(0, K)
        left = tl.load(
            x + rows[:, None] * width + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < width), other=0.0
        )
        right = tl.load(w + columns[None, :] * width + inner[:, None], mask=inner[:, None] < width, other=0.0)
        total += tl.dot(left, right, input_precision="ieee")
    total += tl.load(b + columns)[None, :]
    place = (((rows // seq) * heads + head) * seq + rows % seq)[:, None] * D + inside[None, :]
    valid = rows[:, None] < m
    if which == 0:
        tl.store(q + place, total, mask=valid)
    elif which == 1:
        tl.store(k + place, total, mask=valid)
    else:
        tl.store(v + place, total, mask=valid)


def qkv(in_0, in_1, in_2):
    batch, seq, width = in_0.shape
    sizes = (batch, HEADS, seq, width // HEADS)
    q, k, v = (torch.empty(sizes, dtype=in_0.dtype, device=in_0.device) for _ in range(3))
    _qkv[(triton.cdiv(batch * seq, 32), 3 * HEADS)](
        in_0, in_1, in_2, q, k, v, batch * seq, seq, width, HEADS, M=32, D=width // HEADS, K=32
    )
    return q, k, v
