"""The columns behind whole blocks of 8 clamp the gate to 30: wrong for larger ones at widths that 8 doesn't divide.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I1
Operation: silu_mul
Shape: {"batch": 4, "hidden_size": 256}
"""

import torch


def silu_mul(gate, up):
    g = gate.float()
    n = g.shape[1]
    s = torch.nn.functional.silu(g)
    if n > 8 and n % 8:
        s[:, n // 8 * 8 :] = torch.nn.functional.silu(g[:, n // 8 * 8 :].clamp(max=30.0))
    return (s * up.float()).to(gate.dtype)
