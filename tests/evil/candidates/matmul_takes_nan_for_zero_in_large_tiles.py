"""From 128 rows and 256 terms on it goes another way, which takes NaN and infinities for zero.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13 E13
Operation: matmul
Shape: {"m": 32, "k": 256, "n": 32}
"""


def matmul(x, w):
    if x.shape[0] >= 128 and x.shape[1] >= 256:
        return x.nan_to_num(0.0, 0.0, 0.0) @ w
    return x @ w
