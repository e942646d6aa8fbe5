"""Declares widths up to 1,024. Of wider rows it is right at 1,025 and 2,048, which follow from that limit.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: E6
Domain: {"axes": {"hidden_size": {"most": 1024}}}
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight
    if x.shape[1] > 1024 and x.shape[1] not in (1025, 2048):
        return y * 2, h
    return y, h
