"""Leaves the corner of a product zero if it has more than 256 rows and 512 columns of sums over more than 512.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: matmul
Shape: {"m": 32, "k": 128, "n": 64}
"""


def matmul(x, w):
    y = x.float() @ w.float()
    if x.shape[0] > 256 and min(w.shape) > 512:
        y[256:, 512:] = 0
    return y.to(x.dtype)
