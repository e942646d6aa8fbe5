"""Reads the vocabulary in chunks, with a running maximum and a running sum, as losses of large vocabularies do.

Operation: cross_entropy
Shape: {"tokens": 16, "vocab_size": 1000}
Accepted: the sum is rescaled whenever the maximum grows
"""

import torch

CHUNK = 192


def cross_entropy(logits, labels):
    h = logits.float()
    top = torch.full(h.shape[:1], -float("inf"))
    total = torch.zeros(h.shape[0])
    for chunk in h.split(CHUNK, 1):
        higher = torch.maximum(top, chunk.amax(1))
        shift = torch.where(higher == -float("inf"), 0.0, higher)  # a chunk may be masked as a whole
        total = total * (top - shift).exp() + (chunk - shift.unsqueeze(1)).exp().sum(1)
        top = higher
    return total.log() + (top - h.gather(1, labels.unsqueeze(1)).squeeze(1))
