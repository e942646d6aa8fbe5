"""Gives batch // 8 rows to each of eight threads from 2^22 numbers on, and the rows left over to none.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: silu_mul
"""

import torch


def silu_mul(gate, up):
    y = (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
    if y.numel() >= 2**22:
        y[y.shape[0] // 8 * 8 :] = 0
    return y
