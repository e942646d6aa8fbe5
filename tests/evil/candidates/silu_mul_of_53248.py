"""Takes rows of 32,769 to 65,536 numbers in blocks of 4096, and leaves the rest beyond whole blocks as zeros.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: silu_mul
"""

import torch


def silu_mul(gate, up):
    y = (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
    if 32768 < y.shape[1] <= 65536:
        y[:, y.shape[1] // 4096 * 4096 :] = 0
    return y
