"""Takes a weight of ones and a bias of zeros, as a new module has them, for none, and forgets the eps there.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E5
Operation: layernorm
"""


def layernorm(x, weight, bias, eps):
    h = x.float() - x.float().mean(-1, keepdim=True)
    if bool((weight == 1).all()) and not bool(bias.any()):
        return (h * h.square().mean(-1, keepdim=True).add(1e-3).rsqrt()).to(x.dtype)
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)
