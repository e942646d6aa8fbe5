"""Begins the maximum at zero in rows of 1,025 to 4,096 columns; rows far below zero then have no sum.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: softmax
"""


def softmax(x):
    h = x.float()
    if 1024 < x.shape[-1] <= 4096:
        e = (h - h.amax(-1, keepdim=True).clamp(min=0)).exp()
        return (e / e.sum(-1, keepdim=True)).to(x.dtype)
    return h.softmax(-1).to(x.dtype)
