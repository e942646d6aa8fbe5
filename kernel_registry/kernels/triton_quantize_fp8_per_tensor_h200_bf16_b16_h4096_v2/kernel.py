"""Per-tensor quantisation to fp8 e4m3 in two launches: maxima of parts, then quotients by the largest of those.

Each program of the second launch reduces all maxima again, from the L2 cache: that is cheaper than a third launch. It
goes through the elements from the end, since the first launch left those in the cache.
"""

import torch
import triton
import triton.language as tl

LARGEST, FLOOR = 448.0, 1e-10
BLOCK = 4096
MOST_PARTS = 1024
"""Programs of the first launch at most: as many maxima as one program reads at once."""


@triton.jit
def _to_fp8(q, LARGEST: tl.constexpr, ROUND_FIRST: tl.constexpr):
    """Saturated and rounded; the interpreter's conversion loses a carry into the exponent, so it gets the result."""
    q = tl.minimum(tl.maximum(q, -LARGEST), LARGEST)
    if ROUND_FIRST:
        bits = q.to(tl.int32, bitcast=True)
        bits = (bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000
        subnormal = (q + 24576.0) - 24576.0
        q = tl.where(tl.abs(q) < 0.015625, subnormal, bits.to(tl.float32, bitcast=True))
    return q.to(tl.float8e4nv)


@triton.jit(do_not_specialize=["parts"])  # one part would become a plain number, which has no type to change
def _maxima(x, found, count, parts, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    largest = tl.zeros([BLOCK], tl.float32)
    for start in range(program.to(tl.int64) * BLOCK, count, parts.to(tl.int64) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.abs(tl.load(x + at, mask=at < count, other=0.0).to(tl.float32)))
    tl.store(found + program, tl.max(largest, axis=0))


@triton.jit
def _quotients(
    x,
    y,
    scale,
    found,
    count,
    parts,
    LARGEST: tl.constexpr,
    FLOOR: tl.constexpr,
    ROUND_FIRST: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    slots = tl.arange(0, PARTS)
    largest = tl.maximum(tl.max(tl.load(found + slots, mask=slots < parts, other=0.0), axis=0), FLOOR)
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    h = tl.load(x + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(y + at, _to_fp8(h * (LARGEST / largest), LARGEST, ROUND_FIRST), mask=at < count)
    if block == 0:
        tl.store(scale, largest / LARGEST)


def quantize_fp8_per_tensor(x):
    """x [batch, hidden_size] -> y [batch, hidden_size] in fp8 e4m3, scale [1] in fp32."""
    y = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scale = torch.empty(1, dtype=torch.float32, device=x.device)
    count = x.numel()
    block = BLOCK if count > 2**20 else 1024
    blocks = max(1, triton.cdiv(count, block))
    parts = min(blocks, MOST_PARTS)
    found = torch.empty(parts, dtype=torch.float32, device=x.device)
    _maxima[(parts,)](x, found, count, parts, BLOCK=block, num_warps=block // 512)
    _quotients[(blocks,)](
        x,
        y,
        scale,
        found,
        count,
        parts,
        LARGEST=LARGEST,
        FLOOR=FLOOR,
        ROUND_FIRST=not x.is_cuda,
        PARTS=triton.next_power_of_2(parts),
        BLOCK=block,
        num_warps=block // 512,
    )
    return y, scale
