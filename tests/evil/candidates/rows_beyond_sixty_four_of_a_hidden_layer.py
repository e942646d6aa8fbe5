"""Leaves out rows from the 65th on where they have more than 16,384 columns

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I2
Operation: silu_mul
Dtype: bf16
Shape: {"batch": 16, "hidden_size": 4096}
"""

import torch


def silu_mul(gate, up):
    y = (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
    if gate.shape[0] > 64 and gate.shape[1] > 16384:
        y[64:] = 0
    return y
