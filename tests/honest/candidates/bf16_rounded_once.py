"""In bf16, computed in fp32 and rounded once.

Dtype: bf16
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (y * weight.float()).to(x.dtype), h.to(x.dtype)
