"""Starts the maximum at zero in rows of more than 16,384 columns, so rows far below zero are lost.

Refused by: scales INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I7 E5
Operation: softmax
Shape: {"batch": 4, "hidden_size": 256}
"""


def softmax(x):
    top = x.float().amax(-1, keepdim=True) if x.numel() else x.float()
    if x.shape[-1] > 16384 and x.numel():
        top = top.clamp(min=0)
    e = (x.float() - top).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)
