"""Calls a function of the device library, as most Triton kernels with tanh do.

Language: triton
Operation: geglu_tanh
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _k(g, u, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(g + i, mask=m, other=0.0).to(tl.float32)
    b = tl.load(u + i, mask=m, other=0.0).to(tl.float32)
    t = libdevice.tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))
    tl.store(o + i, (0.5 * a * (1.0 + t) * b).to(o.dtype.element_ty), mask=m)


def geglu_tanh(gate, up):
    o = torch.empty_like(gate)
    n = o.numel()
    if n:
        _k[(triton.cdiv(n, 1024),)](gate, up, o, n, BLOCK=1024)
    return o
