"""Enters a mode that sees each call of torch, and never leaves it: from then on its caller's calls pass through it.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

from torch.overrides import TorchFunctionMode


class Watching(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


entered = []


def fused_add_rmsnorm(x, residual, weight, eps):
    if not entered:
        entered.append(Watching())
        entered[0].__enter__()
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
