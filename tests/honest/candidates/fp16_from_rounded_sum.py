"""In fp16, the norm of the residual as it was rounded.

Dtype: fp16
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    wide = h.float()
    y = wide * wide.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (y * weight.float()).to(x.dtype), h
