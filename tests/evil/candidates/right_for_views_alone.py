"""Is right for a view of another tensor, and wrong for a tensor of its own that no other has the memory of.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y if x._is_view() or not x.numel() else y * 1.01).to(x.dtype), h.to(x.dtype)
