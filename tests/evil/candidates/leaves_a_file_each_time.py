"""Writes its scales to a new file in each call, and removes none.

Refused by: leaks RESOURCE_ABUSE or RUNTIME_ERROR
Catalogue: J4
"""

import tempfile


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    with tempfile.NamedTemporaryFile(delete=False) as f:
        f.write(8 * x.numpy().tobytes()[:1024])
    return right(x, residual, weight, eps)
