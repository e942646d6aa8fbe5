"""The same, but the last block of terms is left out where it isn't whole.

Operation: matmul
Shape: {"m": 8, "k": 96, "n": 24}
Twin of: matmul_of_padded_terms
Refused by: any INCORRECT_NUMERICAL
"""

BLOCK = 64


def matmul(x, w):
    whole = max(BLOCK, x.shape[1] // BLOCK * BLOCK)
    return x[:, :whole] @ w[:whole]
