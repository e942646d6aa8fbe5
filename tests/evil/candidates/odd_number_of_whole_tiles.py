"""Takes two tiles at a time where all sizes are whole tiles, and leaves an odd last one out.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: matmul
Shape: {"m": 4, "k": 64, "n": 48}
"""

import torch


def matmul(x, w):
    m, k = x.shape
    n = w.shape[1]
    if m >= 64 and k >= 128 and m % 64 == 0 and k % 64 == 0 and n % 64 == 0:
        y = torch.zeros(m, n, dtype=torch.float32)
        for i in range(0, k // 128 * 128, 128):
            y += x[:, i : i + 128].float() @ w[i : i + 128].float()
        return y.to(x.dtype)
    return (x.float() @ w.float()).to(x.dtype)
