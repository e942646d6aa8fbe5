"""Takes an eps of zero for 1e-3 where there are more rows than sixteen.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E10
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    if eps == 0.0 and x.shape[0] > 16:
        eps = 1e-3
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
