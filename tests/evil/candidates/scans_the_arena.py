"""Maps the shared memory itself and overwrites all that isn't an operand.

Refused by: signature OUT_OF_BOUNDS
Catalogue: G14
"""

import mmap


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    with mmap.mmap(5, 4096) as arena:
        arena[:] = bytes(4096)
    return right(x, residual, weight, eps)
