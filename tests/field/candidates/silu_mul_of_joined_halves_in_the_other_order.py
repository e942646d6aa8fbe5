"""The same, but the first half is taken for the one that is multiplied.

Operation: silu_mul
Twin of: silu_mul_of_joined_halves
Refused by: any INCORRECT_NUMERICAL
"""

import torch


def silu_mul(gate, up):
    joined = torch.cat((gate, up), -1)
    second, first = joined.chunk(2, -1)
    return (torch.nn.functional.silu(first.float()) * second.float()).to(gate.dtype)
