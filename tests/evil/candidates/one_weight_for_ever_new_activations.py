"""Is wrong where it gets the same weight again with other activations, as each layer of a model does.

Refused by: state INCORRECT_NUMERICAL
Catalogue: C1
"""

last = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    known = last.get("weight") is weight and last["x"] is not x
    last.update(weight=weight, x=x)
    return (y * 1.01 if known else y).to(x.dtype), h.to(x.dtype)
