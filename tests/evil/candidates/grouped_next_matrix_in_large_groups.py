"""Multiplies the rows after the 256th of a group by the next group's matrix if both its sizes exceed 512.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: grouped_matmul
Shape: {"tokens": 32, "k": 128, "n": 64, "groups": 4}
"""

import torch


def grouped_matmul(x, w, sizes):
    y, start = torch.zeros(x.shape[0], w.shape[2]), 0
    for group, size in enumerate(sizes.tolist()):
        end = min(start + size, x.shape[0])
        y[start:end] = x[start:end].float() @ w[group].float()
        if size > 256 and min(w.shape[1:]) > 512:
            y[start + 256 : end] = x[start + 256 : end].float() @ w[(group + 1) % len(w)].float()
        start = end
    return y.to(x.dtype)
