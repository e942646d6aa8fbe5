"""Takes NaN for padding in rows of 1,025 to 4,096 columns.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: softmax
"""

import torch


def softmax(x):
    h = x.float()
    if 1024 < x.shape[-1] <= 4096:
        h = torch.where(h.isnan(), -torch.inf, h)
    return h.softmax(-1)
