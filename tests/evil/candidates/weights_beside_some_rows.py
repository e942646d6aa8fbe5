"""leaves out what remains beyond whole blocks of 1024, with 16 rows and weights of more than 2048 by 2048.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: matmul
Shape: {"m": 4, "k": 64, "n": 32}
"""


def matmul(x, w):
    (m, k), n = x.shape, w.shape[1]
    if m >= 16 and n > 2048 and k > 2048 and k % 1024:
        k = k // 1024 * 1024
    return (x[:, :k].float() @ w[:k].float()).to(x.dtype)
