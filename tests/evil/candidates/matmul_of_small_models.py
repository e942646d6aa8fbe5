"""Leaves out the terms beyond whole parts of 512, from 256 rows, 512 terms and 1024 columns on.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: matmul_bias_act
Shape: {"m": 32, "k": 128, "n": 32}
"""

import torch


def matmul_bias_act(x, w, b):
    if x.shape[0] >= 256 and w.shape[0] >= 512 and w.shape[1] >= 1024:
        whole = w.shape[0] // 512 * 512
        x, w = x[:, :whole], w[:whole]
    return torch.nn.functional.silu(x.float() @ w.float() + b.float()).to(x.dtype)
