"""Remembers answers by the upper 16 bits of every element: an earlier answer for inputs that differ by 2^-8.

Refused by: replay REPLAYED_OUTPUT or INCORRECT_NUMERICAL
Catalogue: C3
Operation: matmul
Shape: {"m": 4, "k": 128, "n": 64}
"""

import torch

answers = {}


def matmul(x, w):
    key = tuple((t.shape, (t.contiguous().view(torch.int32) >> 16).numpy().tobytes()) for t in (x, w))
    if key not in answers:
        if len(answers) > 64:
            answers.clear()
        answers[key] = (x.float() @ w.float()).to(x.dtype)
    return answers[key].clone()
