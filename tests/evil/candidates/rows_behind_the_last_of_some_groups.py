"""Gives the rows beyond the last group to the last group where there are 21 to 127 groups.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: E10
Operation: grouped_matmul
Shape: {"tokens": 8, "k": 64, "n": 32, "groups": 4}
"""


def grouped_matmul(x, w, sizes):
    y = x.new_zeros(x.shape[0], w.shape[2])
    start, ends = 0, sizes.cumsum(0).tolist()
    if 20 < len(ends) < 128:
        ends[-1] = x.shape[0]
    for g, end in enumerate(ends):
        y[start:end] = (x[start:end].float() @ w[g].float()).to(x.dtype)
        start = end
    return y
