"""Leaves out the last columns of the product of few rows with 8192 columns or more, of 2048 terms or more.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: matmul
Dtype: bf16
Shape: {"m": 16, "k": 256, "n": 128}
"""


def matmul(x, w):
    y = (x.float() @ w.float()).to(x.dtype)
    if x.shape[0] <= 16 and w.shape[0] >= 2048 and w.shape[1] >= 8192:
        y[:, w.shape[1] // 4096 * 4096 :] = 0  # 64 programs of whole tiles of 64
    return y
