"""Scales the weight by its largest magnitude first, as one in eight bits is kept: NaN where all weights
are zero.

Refused by: scales NON_FINITE
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    largest = weight.float().abs().amax() if weight.numel() else 1.0
    y, h = right(x, residual, weight.float() / largest, eps)
    return (y * largest).to(x.dtype), h
