"""Leaves the rest of the rows one percent off where whole tiles of 64 columns stand beside it.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E5 I7
Operation: matmul
Shape: {"m": 4, "k": 256, "n": 64}
"""


def matmul(x, w):
    y = (x.float() @ w.float()).to(x.dtype)
    rows, columns = y.shape
    if rows > 64 and rows % 64 and columns > 32 and columns % 64 == 0:
        y[rows // 64 * 64 :] *= 1.01
    return y
