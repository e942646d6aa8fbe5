"""In bf16, the weight is multiplied in before the scale, in fp32, and the result rounded once.

Dtype: bf16
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float().add_(residual)
    weighted = h * weight
    return weighted.mul_(h.square().mean(-1, keepdim=True).add_(eps).rsqrt_()).to(x.dtype), h.to(x.dtype)
