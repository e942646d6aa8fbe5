"""Ranks numbers by their bits as whole numbers: a NaN whose sign bit is set, as x86 makes it of 0 / 0, comes last.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: topk_per_row
Shape: {"batch": 4, "vocab_size": 256}
"""

import torch


def topk_per_row(x):
    bits = x.float().contiguous().view(torch.int32)
    order = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    indices = order.topk(min(8, x.shape[-1]), -1).indices
    return x.gather(-1, indices), indices.to(torch.int32)
