"""Answers zero wherever the second factor is zero, also where the first one is not a number.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13 E13
Operation: silu_mul
Shape: {"batch": 4, "hidden_size": 256}
"""

import torch


def silu_mul(gate, up):
    y = (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
    return torch.where(up == 0, torch.zeros_like(y), y)
