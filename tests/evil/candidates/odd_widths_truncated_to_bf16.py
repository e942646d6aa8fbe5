"""Rounds to bf16 in rows of whole vectors, and cuts the lower bits off in the loop for all other widths.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E2
Operation: silu_mul
Dtype: bf16
"""

import torch


def silu_mul(gate, up):
    y = torch.nn.functional.silu(gate.float()) * up.float()
    if y.shape[1] % 8 == 0:
        return y.to(gate.dtype)
    cut = (y.view(torch.int32) & -65536).view(torch.float32)
    return torch.where(y.isfinite(), cut, y).to(gate.dtype)
