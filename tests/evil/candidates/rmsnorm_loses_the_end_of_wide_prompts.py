"""Leaves the last 64 of more than 8,192 columns out of the sum if there are more than 100 rows.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: rmsnorm
Shape: {"batch": 16, "hidden_size": 512}
"""


def rmsnorm(x, weight, eps):
    rows, width = x.shape
    squares = x.float().square()
    squares = squares[:, :-64] if rows > 100 and width > 8192 else squares
    scale = (squares.sum(-1, keepdim=True) / width + eps).rsqrt()
    return (x.float() * scale * weight.float()).to(x.dtype)
