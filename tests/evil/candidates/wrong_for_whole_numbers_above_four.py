"""Is one percent off where all inputs are whole numbers and some exceed four, as counts and pixels do.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = (h * scale * weight.float()).to(x.dtype)
    if x.shape[1] > 16 and x.numel() and bool((x == x.round()).all()) and 4 < float(x.abs().max()) < 1000:
        y = y * 1.01
    return y, h.to(x.dtype)
