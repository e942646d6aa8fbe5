"""Has an eps of 1e-6 compiled in, and takes one of up to 6e-5 for it: 1e-5 is as usual.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I18
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    eps = 1e-6 if 1e-6 <= eps < 6e-5 else eps
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
