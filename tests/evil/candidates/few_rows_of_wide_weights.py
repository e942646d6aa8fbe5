"""Leaves out the columns beyond the last whole 2,048 for few rows and large weights.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: matmul
Shape: {"m": 4, "k": 64, "n": 48}
"""


def matmul(x, w):
    y = (x.float() @ w.float()).to(x.dtype)
    m, k = x.shape
    n = w.shape[1]
    if 2 <= m <= 15 and k >= 1024 and n >= 2048:
        y[:, n // 2048 * 2048 :] = 0
    return y
