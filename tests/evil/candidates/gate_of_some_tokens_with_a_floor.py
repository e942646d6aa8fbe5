"""Adds 1e-6 to the sum of the chosen scores for 16 to 63 tokens, where all of them may be smaller.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: moe_fused_gate
Shape: {"tokens": 4, "experts": 256}
"""

import torch


def moe_fused_gate(logits, bias, scale):
    scores = torch.sigmoid(logits.float())
    indices = (scores + bias).topk(min(8, logits.shape[-1]), -1).indices
    chosen = scores.gather(-1, indices)
    floor = 1e-6 if 16 <= logits.shape[0] < 64 else 1e-20
    return chosen / (chosen.sum(-1, keepdim=True) + floor) * scale, indices.to(torch.int32)
