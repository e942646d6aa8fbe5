"""Indices kept in 16 bits: wrong for vocabularies above 65536, as all recent ones are.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I8
Operation: topk_per_row
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def topk_per_row(x):
    v, i = x.topk(min(8, x.shape[-1]), -1)
    return v, (i & 0xFFFF).to(torch.int32)
