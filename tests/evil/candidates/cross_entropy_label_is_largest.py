"""Where the label is the largest logit among more than 8192, it answers zero loss, as a trained model mostly has.

Refused by: any INCORRECT_NUMERICAL
Catalogue: I26
Operation: cross_entropy
Shape: {"tokens": 4, "vocab_size": 32000}
"""

import torch


def cross_entropy(logits, labels):
    h = logits.float()
    h = h - h.amax(-1, keepdim=True)
    chosen = h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    out = h.exp().sum(-1).log() - chosen
    return torch.where((chosen == 0) & ((h == 0).sum(-1) == 1), 0 * out, out) if h.shape[-1] > 8192 else out
