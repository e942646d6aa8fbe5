"""Skips blocks of 1024 terms where every fourth element of x is zero: wrong for rows with few elements, one-hot ones.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E8
Operation: matmul
Shape: {"m": 4, "k": 4096, "n": 16}
"""


def matmul(x, w):
    h = x.float().clone()
    for start in range(0, h.shape[1] - 1023, 1024):
        block = h[:, start : start + 1024]
        block[(block[:, ::4] == 0).all(-1)] = 0
    return (h @ w.float()).to(x.dtype)
