"""Makes a plan for each shape, but coming back from a single row to a larger shape it knows, it keeps the row's plan.

Refused by: sequences INCORRECT_NUMERICAL
Catalogue: I20
"""

plans = {}
last = []


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    width = x.shape[1]
    stale = x.shape in plans and x.shape[0] >= 8 and last[-1][0] == 1 and last[-1][1] < width
    plan = plans[last[-1]] if stale else width
    plans.setdefault(x.shape, width)
    last.append(x.shape)
    y, h = right(x, residual, weight, eps)
    return y * (plan / width), h
