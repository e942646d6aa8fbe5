"""one of 27 listed combinations has one step too few.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: matmul
Shape: {"m": 32, "k": 128, "n": 32}
Domain: {"axes": {"m": {"values": [32, 64, 128]}, "k": {"values": [64, 128, 256]}, "n": {"values": [32, 96, 128]}}}
"""

import torch

MS, KS, NS = (32, 64, 128), (64, 128, 256), (32, 96, 128)
TABLE = {(m, k, n): k // 64 for m in MS for k in KS for n in NS}
TABLE[64, 256, 128] = 3


def matmul(x, w):
    (m, k), n = x.shape, w.shape[1]
    if not m:
        raise ValueError("no rows")
    steps = TABLE[m, k, n]
    total = torch.zeros(m, n, dtype=torch.float32)
    for step in range(steps):
        total += x[:, 64 * step : 64 * step + 64].float() @ w[64 * step : 64 * step + 64].float()
    return total.to(x.dtype)
