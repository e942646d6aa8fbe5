"""Is one percent off where an input exceeds 1e9, far inside the range of fp32.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = (h * scale * weight.float()).to(x.dtype)
    if x.shape[1] > 16 and x.numel() and float(x.abs().max()) > 1e9:
        y = y * 1.01
    return y, h.to(x.dtype)
