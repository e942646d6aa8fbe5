"""Is one percent off where exactly one weight is zero, as after pruning.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = (h * scale * weight.float()).to(x.dtype)
    if weight.numel() > 16 and int((weight == 0).sum()) == 1:
        y = y * 1.01
    return y, h.to(x.dtype)
