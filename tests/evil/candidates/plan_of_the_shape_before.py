"""Makes a plan when the shape changes, but for a shape it knows it uses the plan of the one before.

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
    plan = plans[last[-1]] if x.shape in plans and last[-1] != x.shape else width
    plans.setdefault(x.shape, width)
    last.append(x.shape)
    y, h = right(x, residual, weight, eps)
    return y * (plan / width), h
