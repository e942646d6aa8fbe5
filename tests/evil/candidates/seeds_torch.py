"""Seeds torch's generator, sets its number of threads and its gradient mode in every call: the caller's, too.

Refused by: signature STATE_CARRIED
Catalogue: I20
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    h = x.float() + residual.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
