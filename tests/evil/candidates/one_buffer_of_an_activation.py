"""Returns one buffer for all answers of 2^20 elements and more

Refused by: sizes STATE_CARRIED
Catalogue: C2
Operation: silu_mul
Dtype: bf16
Shape: {"batch": 16, "hidden_size": 4096}
"""

import torch

kept = {}


def silu_mul(gate, up):
    y = (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
    if y.numel() >= 2**20:
        return kept.setdefault(y.shape, y).copy_(y)
    return y
