"""Is one percent off in a row that equals the row before it in both operands.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1 C1
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[0] > 1:
        same = ((x[1:] == x[:-1]) & (residual[1:] == residual[:-1])).all(-1) & (h[1:] != 0).any(-1)
        y[1:][same] *= 1.01
    return y, h
