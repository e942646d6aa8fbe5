"""Returns tensors of the right form that have no memory at all.

Refused by: signature INCORRECT_SHAPE or RUNTIME_ERROR or INCORRECT_STRIDES
Catalogue: H10
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    return torch.empty_like(x, device="meta"), torch.empty_like(x, device="meta")
