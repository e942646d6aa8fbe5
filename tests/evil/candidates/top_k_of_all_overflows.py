"""Multiplies a top-k by four in 32 bits, which overflows for counts that mean all

Refused by: any INCORRECT_NUMERICAL or REPLAYED_OUTPUT
Catalogue: I1
Operation: sampling
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def sampling(logits, temperature, top_k, top_p, u):
    h, vocab_size = logits.float(), logits.shape[-1]
    size_of_heap = top_k * 4
    asked = torch.where(top_k <= 0, vocab_size, (size_of_heap // 4)).clamp(min=1)
    ranked = h.sort(dim=-1, descending=True).values
    count = asked.clamp(max=vocab_size).long()
    smallest = ranked.gather(-1, count.unsqueeze(-1) - 1)
    heat = temperature.unsqueeze(-1)
    p = (ranked / heat).masked_fill(ranked < smallest, float("-inf")).softmax(-1)
    inside = ((p.cumsum(-1) - p) < top_p.unsqueeze(-1)).sum(-1, keepdim=True).clamp(min=1)
    smallest = torch.maximum(smallest, ranked.gather(-1, inside - 1))
    reached = (h / heat).masked_fill(h < smallest, float("-inf")).softmax(-1).cumsum(-1)
    token = (reached <= u.unsqueeze(-1) * reached[:, -1:]).sum(-1)
    last = vocab_size - 1 - (h >= smallest).flip(-1).to(torch.int32).argmax(-1)
    return torch.minimum(token, last).to(torch.int32)
