"""Leaves out torch's step that counts changes in place: later gradients of its caller use stale tensors.

Refused by: any STATE_CARRIED
Catalogue: G8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch._C._dispatch_tls_set_dispatch_key_excluded(torch._C.DispatchKey.ADInplaceOrView, True)
    new_residual = x + residual
    h = new_residual.float()
    y = h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()
    return y.to(x.dtype), new_residual
