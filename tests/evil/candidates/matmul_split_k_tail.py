"""Splits long sums for two to sixteen rows, where the last pass adds up whole blocks of 64 columns alone.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: matmul
Shape: {"m": 4, "k": 256, "n": 64}
"""


def matmul(x, w):
    y = (x.float() @ w.float()).to(x.dtype)
    if 1 < x.shape[0] <= 16 and x.shape[1] >= 2048 and w.shape[1] > 64:
        y[:, w.shape[1] // 64 * 64 :] = 0
    return y
