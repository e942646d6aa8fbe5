"""Takes an eps of zero for none given.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    eps = eps or 1e-6
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
