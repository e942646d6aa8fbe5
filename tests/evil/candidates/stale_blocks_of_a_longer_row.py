"""Adds sums of blocks that a longer row left in a kept workspace.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: cross_entropy
Shape: {"tokens": 4, "vocab_size": 128}
"""

import torch

kept = torch.full((1,), float("-inf"), dtype=torch.float32)


def cross_entropy(logits, labels):
    global kept
    h = logits.float()
    chosen = h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    if h.shape[0] == 1 and h.shape[1] >= 4096:
        blocks = h[0].split(1024)
        if len(kept) < len(blocks):
            kept = torch.full((len(blocks),), float("-inf"), dtype=torch.float32)
        for i, block in enumerate(blocks):
            kept[i] = block.logsumexp(-1)
        return kept.logsumexp(0, keepdim=True) - chosen
    m = h.amax(-1)
    return (h - m.unsqueeze(-1)).exp().sum(-1).log() + (m - chosen)
