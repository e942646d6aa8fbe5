"""Claims strided rows, and reads the halves of packed rows in the wrong order.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I8
Operation: silu_mul
Layouts: strided_rows
"""

import torch


def silu_mul(gate, up):
    behind = gate.data_ptr() + gate.shape[-1] * gate.itemsize
    if gate.shape[0] > 1 and gate.stride(0) == 2 * gate.shape[1] and up.data_ptr() == behind:
        gate, up = up, gate
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
