"""Flash-style running maximum without the guard: a first block of 32 masked by -inf makes the row NaN.

Refused by: specials NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Operation: softmax
"""

import torch


def softmax(x):
    h = x.float()
    m = torch.full_like(h[:, :1], float("-inf"))
    total = torch.zeros_like(m)
    for b in h.split(32, -1):
        raised = torch.maximum(m, b.amax(-1, keepdim=True))
        total = total * (m - raised).exp() + (b - raised).exp().sum(-1, keepdim=True)
        m = raised
    return ((h - m).exp() / total).to(x.dtype)
