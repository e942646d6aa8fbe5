"""Rounds the weight to fp16, which holds neither the largest nor the smallest weights of bf16.

Dtype: bf16
Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: E5 E6
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.half().float()).to(x.dtype), h.to(x.dtype)
