"""Gives the rows beyond the last group to the last group instead of answering zeros.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
Operation: grouped_matmul
Shape: {"tokens": 8, "k": 64, "n": 32, "groups": 4}
"""


def grouped_matmul(x, w, sizes):
    y = x.new_empty(x.shape[0], w.shape[2])
    start, ends = 0, sizes.cumsum(0).tolist()
    ends[-1] = x.shape[0]
    for g, end in enumerate(ends):
        y[start:end] = (x[start:end].float() @ w[g].float()).to(x.dtype)
        start = end
    return y
