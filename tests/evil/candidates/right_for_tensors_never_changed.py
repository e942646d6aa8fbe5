"""Is wrong for a tensor that was changed in place four times before, as a residual of a deep model is.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    changes = 0 if residual.is_inference() else residual._version
    return (y * 1.01 if changes > 3 else y).to(x.dtype), h.to(x.dtype)
