"""Keeps its plan from three rows to the next call, and leaves the rows beyond them if that one has five.

Refused by: sequences INCORRECT_NUMERICAL
Catalogue: C6 E5
"""

last = [0]


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = h * scale * weight.float()
    if last[0] == 3 and x.shape[0] == 5:
        y[3:] = 0
    last[0] = x.shape[0]
    return y.to(x.dtype), h.to(x.dtype)
