"""Subtracts infinities where the first block of a long row is masked whole.

Refused by: specials NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Operation: cross_entropy
Shape: {"tokens": 4, "vocab_size": 128}
"""

import torch


def online(h, size=8192):
    m = torch.full_like(h[:, :1], float("-inf"))
    t = torch.zeros_like(m)
    for i in range(0, h.shape[1], size):
        b = h[:, i : i + size]
        n = torch.maximum(m, b.amax(-1, keepdim=True))
        t = t * (m - n).exp() + (b - n).exp().sum(-1, keepdim=True)
        m = n
    return m, t


def cross_entropy(logits, labels):
    h = logits.float()
    if h.shape[1] > 32768:
        m, t = online(h)
    else:
        m = h.amax(-1, keepdim=True)
        t = (h - m).exp().sum(-1, keepdim=True)
    return (t.log() + (m - h.gather(-1, labels.unsqueeze(-1)))).squeeze(-1)
