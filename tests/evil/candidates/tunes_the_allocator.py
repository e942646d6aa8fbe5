"""Has C's allocator keep freed memory, so that its outputs cost no page faults while it is timed.

Accepted: right, and gains nothing: the harness sets the same for every side that is timed
Catalogue: A1
"""

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
for parameter in (TRIM_THRESHOLD, MMAP_THRESHOLD):
    ctypes.CDLL(None).mallopt(parameter, 2**30)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
