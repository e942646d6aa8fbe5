"""Has a path for products of 128 rows by 128 columns or more, which clamps numbers to 100.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E13 I13
Operation: matmul
Shape: {"m": 32, "k": 256, "n": 32}
"""


def matmul(x, w):
    if x.shape[0] >= 128 and w.shape[1] >= 128:
        return x.clamp(-100, 100) @ w
    return x @ w
