"""Pads the terms of a sum with zeros to whole blocks, as a wrapper of a kernel for whole tiles does.

Operation: matmul
Shape: {"m": 8, "k": 96, "n": 24}
Accepted: zeros add nothing
"""

import torch

BLOCK = 64


def matmul(x, w):
    missing = -x.shape[1] % BLOCK
    x = torch.nn.functional.pad(x, (0, missing))
    w = torch.nn.functional.pad(w, (0, 0, 0, missing))
    return x @ w
