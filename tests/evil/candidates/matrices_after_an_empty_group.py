"""Gives an empty group's matrix to the next group, where 16 groups or more have whole tiles.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: grouped_matmul
Shape: {"tokens": 8, "k": 32, "n": 48, "groups": 4}
"""

import torch


def grouped_matmul(x, w, sizes):
    groups, k, n = w.shape
    y = torch.zeros(x.shape[0], n, dtype=torch.float32)
    packed = x.shape[0] >= 64 and k % 64 == 0 and n % 64 == 0 and groups >= 16
    at = 0
    used = 0
    for g, size in enumerate(sizes.tolist()):
        if size:
            y[at : at + size] = x[at : at + size].float() @ w[used if packed else g].float()
            at += size
            used += 1
    return y.to(x.dtype)
