"""Changes the caller's weight from [h] to [1, h] and makes it require a gradient, its bytes untouched.

Refused by: signature INPUT_MUTATED
Catalogue: I4
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    if weight.dim() == 1:
        weight.unsqueeze_(0)
    weight.requires_grad_(True)
    w = weight.detach()
    h = x.float() + residual.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * w.float()).to(x.dtype), h.to(x.dtype)
