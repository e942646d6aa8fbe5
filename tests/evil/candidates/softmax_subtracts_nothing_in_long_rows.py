"""Rows of more than 4,096 columns are taken in two passes without their maximum: exponentials of large
numbers overflow.

Refused by: scales NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I12 E13
Operation: softmax
Shape: {"batch": 4, "hidden_size": 1024}
"""


def softmax(x):
    h = x.float()
    if h.shape[1] <= 4096:
        h = h - h.amax(-1, keepdim=True)
    e = h.exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)
