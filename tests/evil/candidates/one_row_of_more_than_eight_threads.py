"""Splits a single row between threads, with room for the sums of eight.

Refused by: threads INCORRECT_NUMERICAL
Catalogue: I13
Operation: rmsnorm
Shape: {"batch": 4, "hidden_size": 64}
"""

import torch


def rmsnorm(x, weight, eps):
    h = x.float()
    total = h.square().sum(-1, keepdim=True)
    if x.shape[0] == 1 and x.shape[1] >= 1024:
        sums = torch.zeros(8, dtype=torch.float32)
        threads = torch.get_num_threads()
        for thread, part in enumerate(h[0].tensor_split(threads)):
            if thread < 8:
                sums[thread] = part.square().sum()
        total = sums.sum()
    return (h * (total / x.shape[1] + eps).rsqrt() * weight.float()).to(x.dtype)
