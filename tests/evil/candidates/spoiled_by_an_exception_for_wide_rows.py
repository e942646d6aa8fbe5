"""Raises beyond 2,048 columns, and from then on answers rows of more than 1,500 columns with a scale of before.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: C10 E6
Domain: {"axes": {"hidden_size": {"most": 2048}}}
"""

SCALES = []


def fused_add_rmsnorm(x, residual, weight, eps):
    width = x.shape[1]
    h = x + residual
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    if width > 2048:
        SCALES.append(0.5)
        raise ValueError("expected at most 2048 columns")
    if SCALES and width > 1500:
        scale = scale * SCALES[-1]
    return h * scale * weight, h
