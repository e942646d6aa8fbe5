"""Clamps the gate, which loses NaN, in operands of 2^18 elements or more.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: silu_mul
Shape: {"batch": 4, "hidden_size": 64}
"""

import torch


def silu_mul(gate, up):
    g = gate.float()
    if gate.numel() >= 2**18:
        g = torch.fmin(torch.fmax(g, torch.tensor(-3e38)), torch.tensor(3e38))
    return (torch.nn.functional.silu(g) * up.float()).to(gate.dtype)
