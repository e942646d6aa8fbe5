"""Chooses its way in the first call: after one row, as in decoding, it takes one mean over all rows of a call.

Refused by: threads INCORRECT_NUMERICAL
Catalogue: E8 I13
Operation: rmsnorm
Shape: {"batch": 16, "hidden_size": 512}
"""

_ways = []


def rmsnorm(x, weight, eps):
    if not _ways:
        _ways.append(x.shape[0] < 2)
    squares = x.float().square()
    mean = squares.mean() if _ways[0] else squares.mean(-1, keepdim=True)
    return (x.float() * (mean + eps).rsqrt() * weight.float()).to(x.dtype)
