"""Ranks a NaN as infinity, so that it comes behind an infinity that stands before it in the row.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I8
Operation: topk_per_row
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def topk_per_row(x):
    ranked = torch.where(x.isnan(), float("inf"), x)
    indices = ranked.sort(dim=-1, descending=True, stable=True).indices[:, :8]
    return x.gather(-1, indices), indices.to(torch.int32)
