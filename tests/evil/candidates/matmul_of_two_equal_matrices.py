"""Is one percent off where both matrices hold equal values, as where a matrix is squared.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
Operation: matmul
Shape: {"m": 8, "k": 64, "n": 64}
"""


def matmul(x, w):
    """x [m, k], w [k, n] -> y [m, n]."""
    y = x.float() @ w.float()
    if x.shape == w.shape and x.shape[0] > 3 and bool((x == w).all()) and bool(x.any()):
        y = y * 1.01
    return y.to(x.dtype)
