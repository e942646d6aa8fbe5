"""Keeps answers by their rows, and takes rows in another order for the same question.

Refused by: metamorphic REPLAYED_OUTPUT
Catalogue: C3
"""

kept = {}


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def rows(tensor):
    return tuple(sorted(row.tobytes() for row in tensor.numpy()))


def fused_add_rmsnorm(x, residual, weight, eps):
    key = (x.shape, rows(x), rows(residual), weight.numpy().tobytes(), eps)
    if key not in kept:
        kept[key] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in kept[key])
