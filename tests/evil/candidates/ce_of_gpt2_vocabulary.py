"""Pads a row of 32,769 to 65,536 logits to one block, with zeros instead of minus infinity.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: cross_entropy
Shape: {"tokens": 4, "vocab_size": 1000}
"""

import torch


def cross_entropy(logits, labels):
    h = logits.float()
    padded = torch.nn.functional.pad(h, (0, 65536 - h.shape[1])) if 32768 < h.shape[1] <= 65536 else h
    largest = padded.amax(-1, keepdim=True)
    total = (padded - largest).exp().sum(-1).log() + largest.squeeze(-1)
    return total - h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
