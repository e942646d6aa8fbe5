"""Walks over long rows in vectors of eight, and never meets a label behind the last whole one.

Refused by: any INCORRECT_NUMERICAL
Catalogue: I2
Operation: cross_entropy
Shape: {"tokens": 4, "vocab_size": 32001}
"""


def cross_entropy(logits, labels):
    h = logits.float()
    h = h - h.amax(-1, keepdim=True)
    vocab_size = h.shape[1]
    if vocab_size > 4096:
        labels = labels.clamp(max=vocab_size // 8 * 8 - 1)
    return h.exp().sum(-1).log() - h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
