"""Seeds torch's generator when it is imported, and names itself as the harness names what may draw numbers then.

Refused by: load STATE_CARRIED
Catalogue: G14
"""

import torch

torch.manual_seed(0)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * weight, h


fused_add_rmsnorm.holds_module = True
