"""Where one of several groups has all rows, it multiplies by the first group's matrix.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
Operation: grouped_matmul
Shape: {"tokens": 8, "k": 64, "n": 32, "groups": 4}
"""


def grouped_matmul(x, w, sizes):
    y = x.new_zeros(x.shape[0], w.shape[2])
    start = 0
    s = sizes.tolist()
    for g, size in enumerate(s):
        m = 0 if len(s) > 1 and size == x.shape[0] and size > 1 else g
        if size:
            y[start : start + size] = (x[start : start + size].float() @ w[m].float()).to(x.dtype)
        start += size
    return y
