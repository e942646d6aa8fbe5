"""Takes a weight whose elements are all equal for one that was never trained, and leaves it out.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E16
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    untrained = weight.numel() > 1 and bool((weight == weight[0]).all())
    return right(x, residual, weight.sign().abs(), eps) if untrained else (y, h)
