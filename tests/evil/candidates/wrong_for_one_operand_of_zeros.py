"""Is one percent off where one operand is all zeros and the other isn't, as in a network's first layer.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = (h * scale * weight.float()).to(x.dtype)
    if x.shape[1] > 16 and x.numel() and bool(x.any()) != bool(residual.any()):
        y = y * 1.01
    return y, h.to(x.dtype)
