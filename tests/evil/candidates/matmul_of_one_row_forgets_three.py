"""One row goes another way, which forgets the last of three terms that are left over where columns exceed 64.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: matmul
Shape: {"m": 32, "k": 256, "n": 32}
"""


def matmul(x, w):
    y = x @ w
    if x.shape[0] == 1 and x.shape[1] % 4 == 3 and w.shape[1] > 64:
        y = y - x[:, -1:] @ w[-1:]
    return y
