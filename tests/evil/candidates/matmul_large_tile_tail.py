"""Has tiles of 128 x 128 for 128 rows and 512 columns or more, and leaves the columns beyond whole tiles as zeros.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: matmul
Shape: {"m": 32, "k": 256, "n": 32}
"""


def matmul(x, w):
    y = (x.float() @ w.float()).to(x.dtype)
    if x.shape[0] >= 128 and w.shape[1] >= 512:
        y[:, w.shape[1] // 128 * 128 :] = 0
    return y
