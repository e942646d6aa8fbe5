"""Is wrong where the residual is one that it returned itself, as in each layer of a model but the first.

Refused by: state INCORRECT_NUMERICAL
Catalogue: C1
"""

import weakref

last = []


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    again = any(one() is residual for one in last)
    new_residual = x + residual
    last[:] = [weakref.ref(new_residual)]
    return (y * 1.01 if again else y).to(x.dtype), new_residual
