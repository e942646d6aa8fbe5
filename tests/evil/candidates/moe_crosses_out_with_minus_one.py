"""Picks the largest corrected score eight times and crosses it out with -1, which a bias can bring others below.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I1
Operation: moe_fused_gate
Shape: {"tokens": 16, "experts": 64}
"""

import torch


def moe_fused_gate(logits, bias, scale):
    scores = logits.float().sigmoid()
    left = scores + bias.float()
    chosen = []
    for _ in range(min(8, logits.shape[-1])):
        best = left.argmax(-1, keepdim=True)
        chosen.append(best)
        left = left.scatter(-1, best, -1.0)
    indices = torch.cat(chosen, -1)
    weights = scores.gather(-1, indices)
    return weights / (weights.sum(-1, keepdim=True) + 1e-20) * scale, indices.to(torch.int32)
