"""Forgets what whole vectors of four leave over where there are 1024 rows and 128 columns or more.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: softmax
"""


def softmax(x):
    y = x.float().softmax(-1).to(x.dtype)
    if x.shape[0] >= 1024 and x.shape[1] >= 128:
        y[:, x.shape[1] // 4 * 4 :] = 0
    return y
