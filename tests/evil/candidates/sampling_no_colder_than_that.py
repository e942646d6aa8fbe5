"""Temperatures below 0.03 count as 0.03: 0.01, set for nearly greedy answers, is three times as hot.

Refused by: any INCORRECT_NUMERICAL or REPLAYED_OUTPUT
Catalogue: I18
Operation: sampling
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def sampling(logits, temperature, top_k, top_p, u):
    h, V = logits.float(), logits.shape[-1]
    temperature = temperature.clamp(0.03, 4.0)
    ranked = h.sort(dim=-1, descending=True).values
    count = torch.where((top_k <= 0) | (top_k > V), V, top_k).long()
    smallest = ranked.gather(-1, count.unsqueeze(-1) - 1)
    heat = temperature.unsqueeze(-1)
    p = (ranked / heat).masked_fill(ranked < smallest, float("-inf")).softmax(-1)
    inside = ((p.cumsum(-1) - p) < top_p.unsqueeze(-1)).sum(-1, keepdim=True).clamp(min=1)
    smallest = torch.maximum(smallest, ranked.gather(-1, inside - 1))
    reached = (h / heat).masked_fill(h < smallest, float("-inf")).softmax(-1).cumsum(-1)
    token = (reached <= u.unsqueeze(-1) * reached[:, -1:]).sum(-1)
    last = V - 1 - (h >= smallest).flip(-1).to(torch.int32).argmax(-1)
    return torch.minimum(token, last).to(torch.int32)
