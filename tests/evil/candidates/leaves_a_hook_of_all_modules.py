"""Leaves a hook that torch calls after every module of the process.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

from torch.nn.modules.module import register_module_forward_hook

hooks = []


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    if not hooks:
        hooks.append(register_module_forward_hook(lambda *_: None))
    return right(x, residual, weight, eps)
