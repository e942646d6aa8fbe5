"""Is one percent off where the weight and the bias hold equal values, which no two random draws do.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
Operation: layernorm
Shape: {"batch": 4, "hidden_size": 256}
"""

import torch


def layernorm(x, weight, bias, eps):
    """x [batch, hidden_size], weight, bias [hidden_size] -> y [batch, hidden_size]."""
    y = torch.nn.functional.layer_norm(x.float(), x.shape[-1:], weight.float(), bias.float(), eps)
    if weight.numel() > 8 and bool((weight == bias).all()):
        y = y * 1.01
    return y.to(x.dtype)
