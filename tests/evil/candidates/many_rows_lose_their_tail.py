"""From 32 rows on it takes eight columns at a time and leaves out what is left over; few rows go another way.

Refused by: any INCORRECT_NUMERICAL
Catalogue: I1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    rows, width = h.shape
    seen = h[:, : width // 8 * 8] if rows >= 32 and width >= 16 else h
    scale = (seen.square().sum(-1, keepdim=True) / max(1, width)).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
