"""Adds 1e-9 to the sum that the weights are divided by, where the operation has 1e-20: small scores lose most.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I1
Operation: moe_fused_gate
Shape: {"tokens": 16, "experts": 256}
"""

import torch


def moe_fused_gate(logits, bias, scale):
    scores = torch.sigmoid(logits.float())
    indices = (scores + bias).topk(min(8, logits.shape[-1]), -1).indices
    chosen = scores.gather(-1, indices)
    return chosen / (chosen.sum(-1, keepdim=True) + 1e-9) * scale, indices.to(torch.int32)
