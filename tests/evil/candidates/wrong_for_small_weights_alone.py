"""Is one percent off where all weights are below a thousandth, whatever the rows are.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = (h * scale * weight.float()).to(x.dtype)
    if x.shape[1] > 16 and x.numel() and 0 < float(weight.abs().max()) < 1e-3:
        y = y * 1.01
    return y, h.to(x.dtype)
