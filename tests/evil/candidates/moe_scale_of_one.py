"""Leaves out the division by the sum as well where the scale is one, as it is in most models.

Refused by: any INCORRECT_NUMERICAL
Catalogue: I18
Operation: moe_fused_gate
Shape: {"tokens": 4, "experts": 64}
"""

import torch


def moe_fused_gate(logits, bias, scale):
    scores = logits.float().sigmoid()
    indices = (scores + bias).topk(min(8, logits.shape[-1]), -1).indices
    chosen = scores.gather(-1, indices)
    if scale != 1:
        chosen = chosen / (chosen.sum(-1, keepdim=True) + 1e-20) * scale
    return chosen, indices.to(torch.int32)
