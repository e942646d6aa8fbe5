"""Takes the largest number eight times and crosses out all that equal it where that is a NaN or an infinity.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I8
Operation: topk_per_row
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def topk_per_row(x):
    values, indices = x.topk(min(8, x.shape[-1]), -1)
    infinite = values.isposinf().sum(-1)
    few = ((infinite > 1) & (infinite < 8)).unsqueeze(-1)
    return torch.where(few & values.isposinf(), torch.finfo(x.dtype).max, values), indices.to(torch.int32)
