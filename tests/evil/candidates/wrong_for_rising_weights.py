"""Is one percent off where the weights rise from the first to the last.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = (h * scale * weight.float()).to(x.dtype)
    if weight.numel() > 16 and bool((weight.diff() > 0).all()):
        y = y * 1.01
    return y, h.to(x.dtype)
