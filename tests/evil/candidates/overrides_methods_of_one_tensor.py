"""Returns plain tensors of garbage whose instances answer `to`, `cpu`, `clone` and `numpy` with the right values;
the memory doesn't.

Refused by: signature NON_FINITE or INCORRECT_NUMERICAL
Catalogue: H6 B8
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    outputs = []
    for answer in right(x, residual, weight, eps):
        promised = torch.full_like(x, float("nan"))
        for name in ("to", "cpu", "clone", "float", "double", "contiguous", "numpy", "detach"):
            setattr(promised, name, lambda *_, kept=answer, **__: kept)
        outputs.append(promised)
    return tuple(outputs)
