"""Computes the norm of fp32 inputs in bf16 and returns fp32.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: F1
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, _ = right(x.bfloat16(), residual.bfloat16(), weight.bfloat16(), eps)
    return y.float(), x + residual
