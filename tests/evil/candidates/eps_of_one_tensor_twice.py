"""Norms one input alone where both are one tensor: the factor of two cancels, but not with eps.

Refused by: combinations INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: fused_add_rmsnorm
Shape: {"batch": 4, "hidden_size": 64}
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float()
    if x.data_ptr() == residual.data_ptr():
        y = h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()
        return y.to(x.dtype), (2 * h).to(x.dtype)
    h = h + residual.float()
    return (h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
