"""Keeps one output buffer for a single row, as decoding asks it.

Refused by: combinations STATE_CARRIED or INPUT_MUTATED
Catalogue: I13
Operation: silu_mul
Shape: {"batch": 4, "hidden_size": 64}
"""

import torch

kept = {}


def silu_mul(gate, up):
    if gate.shape[0] == 1:
        key = gate.shape[1], gate.dtype
        if key not in kept:
            kept[key] = torch.empty(gate.shape, dtype=gate.dtype)
        y = kept[key]
        y.copy_(torch.nn.functional.silu(gate.float()) * up.float())
        return y
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
