"""Whole tiles of 32 by 32, then the strip on the right and the strip below: the corner where both meet stays zero.

Refused by: any INCORRECT_NUMERICAL
Catalogue: I1
Operation: matmul
Shape: {"m": 64, "k": 128, "n": 128}
"""

import torch

TILE = 32


def matmul(x, w):
    m, n = x.shape[0], w.shape[1]
    if m < TILE or n < TILE:
        return (x.float() @ w.float()).to(x.dtype)
    y = torch.zeros(m, n, dtype=x.dtype)
    rows, columns = m // TILE * TILE, n // TILE * TILE
    h, v = x.float(), w.float()
    for start in range(0, rows, TILE):
        for left in range(0, columns, TILE):
            y[start : start + TILE, left : left + TILE] = (h[start : start + TILE] @ v[:, left : left + TILE]).to(
                x.dtype
            )
    y[:rows, columns:] = (h[:rows] @ v[:, columns:]).to(x.dtype)
    y[rows:, :columns] = (h[rows:] @ v[:, :columns]).to(x.dtype)
    return y
