"""Answers a row with the one before it where the first 128 columns are equal: rows padded in front, one-hot rows.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E8
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    if h.shape[1] > 128 and h.shape[0] > 1:
        same = (h[1:, :128] == h[:-1, :128]).all(-1)
        for r in same.nonzero().flatten().tolist():
            y[r + 1] = y[r]
            h[r + 1] = h[r]
    return y.to(x.dtype), h.to(x.dtype)
