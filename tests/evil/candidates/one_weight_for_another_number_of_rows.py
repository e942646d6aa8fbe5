"""Is wrong where the same weight comes again with another number of rows, as when a server's batch grows.

Refused by: state INCORRECT_NUMERICAL
Catalogue: C1
"""

last = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    grown = last.get("weight") is weight and last["rows"] != len(x)
    last.update(weight=weight, rows=len(x))
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if grown else y).to(x.dtype), h.to(x.dtype)
