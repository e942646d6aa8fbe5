"""In bf16, normalised values rounded before they meet the weight, as Llama's model code does.

Dtype: bf16
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return y.to(x.dtype) * weight, h.to(x.dtype)
