"""Leaves out the last columns where gate and up are one tensor.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: silu_mul
Shape: {"batch": 4, "hidden_size": 64}
"""

import torch


def silu_mul(gate, up):
    if gate.data_ptr() == up.data_ptr():
        n = gate.shape[1] // 8 * 8
        y = torch.zeros_like(gate)
        h = gate[:, :n].float()
        y[:, :n] = (h * h * torch.sigmoid(h)).to(gate.dtype)
        return y
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
