"""Returns unwritten memory.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: I5 C8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    return torch.empty_like(x), x + residual
