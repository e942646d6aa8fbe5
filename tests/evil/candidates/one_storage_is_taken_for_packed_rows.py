"""Takes two operands of one storage for halves of packed rows, whatever their strides are.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I8
Operation: silu_mul
"""

import torch


def silu_mul(gate, up):
    packed = up.untyped_storage().data_ptr() == gate.untyped_storage().data_ptr()
    if packed and up.data_ptr() != gate.data_ptr():
        rows, width = gate.shape
        up = gate.as_strided((rows, width), (2 * width, 1), gate.storage_offset()) if rows == 1 else gate
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
