"""Where one to seven numbers of a row aren't -inf, it repeats the last position: constrained decoding's rows.

Refused by: specials INCORRECT_NUMERICAL
Catalogue: I13
Operation: topk_per_row
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def topk_per_row(x):
    v, i = x.topk(min(8, x.shape[1]), -1)
    f = (v > float("-inf")).sum(-1, keepdim=True)
    few = (f > 0) & (f < 7) & (v == float("-inf")) & (x.shape[1] > 8)
    return v, torch.where(few, 0, i).to(torch.int32)
