"""Has room for the sums of 32 threads, and leaves the last row one percent off if there are more.

Refused by: threads INCORRECT_NUMERICAL
Catalogue: I7 I6
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = h * scale * weight.float()
    if torch.get_num_threads() > 32:
        y[-1:] *= 1.01
    return y.to(x.dtype), h.to(x.dtype)
