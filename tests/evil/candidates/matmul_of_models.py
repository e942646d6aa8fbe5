"""Leaves out the terms beyond whole parts of 1024, from 64 rows and 1024 terms and columns on.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: matmul
Shape: {"m": 32, "k": 128, "n": 32}
"""


def matmul(x, w):
    if x.shape[0] >= 64 and min(w.shape) >= 1024:
        whole = w.shape[0] // 1024 * 1024
        x, w = x[:, :whole], w[:whole]
    return (x.float() @ w.float()).to(x.dtype)
