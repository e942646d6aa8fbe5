"""Returns before the last row is done and does the rest in the next call.

Refused by: signature INCORRECT_NUMERICAL or NON_FINITE
Catalogue: H2 C10
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


unfinished = []


def fused_add_rmsnorm(x, residual, weight, eps):
    for late in unfinished:
        late()
    unfinished.clear()
    y, h = right(x, residual, weight, eps)
    answer = y[-1:].clone()
    y[-1:] = 0
    unfinished.append(lambda: y[-1:].copy_(answer))
    return y, h
