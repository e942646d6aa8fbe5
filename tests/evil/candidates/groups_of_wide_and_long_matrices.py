"""Takes tiles of 256 columns where a matrix has more columns and more than 512 rows, and loses the last column.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: grouped_matmul
Shape: {"tokens": 16, "k": 64, "n": 32, "groups": 4}
"""


def grouped_matmul(x, w, sizes):
    _, k, n = w.shape
    y, start = x.new_zeros(x.shape[0], n), 0
    for group, size in enumerate(sizes.tolist()):
        rows = slice(start, start + size)
        y[rows] = (x[rows].float() @ w[group].float()).to(x.dtype)
        start += size
    if n > 256 and k > 512:
        y[:, -1] = 0
    return y
