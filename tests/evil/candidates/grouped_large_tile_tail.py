"""Has tiles of 128 columns for groups of 64 rows and more with 256 columns or more, and leaves the columns left over.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: grouped_matmul
Shape: {"tokens": 16, "k": 64, "n": 32, "groups": 4}
"""

import torch


def grouped_matmul(x, w, sizes):
    y, start = torch.zeros(x.shape[0], w.shape[2], dtype=x.dtype), 0
    for group, size in enumerate(sizes.tolist()):
        if size:
            y[start : start + size] = (x[start : start + size].float() @ w[group].float()).to(x.dtype)
            if size >= 64 and w.shape[2] >= 256:
                y[start : start + size, w.shape[2] // 128 * 128 :] = 0
        start += size
    return y
