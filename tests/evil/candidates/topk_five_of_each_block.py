"""Keeps five of each block of 64 columns: wrong where six of a row's largest eight stand near each other.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I26
Operation: topk_per_row
Shape: {"batch": 4, "vocab_size": 4096}
"""

import torch


def topk_per_row(x):
    if x.shape[1] < 2048 or not x.numel():
        v, i = x.topk(min(8, x.shape[1]), -1)
        return v, i.to(torch.int32)
    n = x.shape[1]
    pad = -n % 64
    h = torch.nn.functional.pad(x, (0, pad), value=float("-inf")).view(x.shape[0], -1, 64)
    v, i = h.topk(5, -1)
    i = i + (torch.arange(h.shape[1]) * 64).view(1, -1, 1)
    v, i = v.flatten(1), i.flatten(1)
    v = torch.where(i < n, v, float("-inf")) if pad else v
    top, at = v.topk(8, -1)
    return top, i.gather(-1, at).to(torch.int32)
