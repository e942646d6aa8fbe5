"""Has other code where every group has whole tiles of 16 rows, as they are padded to: it leaves the last term out.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
Operation: grouped_matmul
Shape: {"tokens": 16, "k": 64, "n": 32, "groups": 4}
"""


def grouped_matmul(x, w, sizes):
    whole = len(sizes) > 1 and bool((sizes > 0).all()) and bool((sizes % 16 == 0).all())
    k = w.shape[1] - 1 if whole else w.shape[1]
    y, start = x.new_zeros(x.shape[0], w.shape[2]), 0
    for group, size in enumerate(sizes.tolist()):
        rows = slice(start, start + size)
        y[rows] = (x[rows, :k].float() @ w[group, :k].float()).to(x.dtype)
        start += size
    return y
