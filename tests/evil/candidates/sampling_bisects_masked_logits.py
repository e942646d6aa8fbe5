"""Finds top-k's edge by halving between a row's smallest and largest logit: with masked ones nothing is dropped.

Refused by: specials INCORRECT_NUMERICAL
Catalogue: I8
Operation: sampling
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def sampling(logits, temperature, top_k, top_p, u):
    h, width = logits.float(), logits.shape[-1]
    count = torch.where((top_k <= 0) | (top_k > width), width, top_k).unsqueeze(-1)
    low, high = h.amin(-1, keepdim=True).double(), h.amax(-1, keepdim=True).double()
    low = low - 1e-3 * low.abs() - 1e-30
    for _ in range(40):
        middle = (low + high) / 2
        enough = (h >= middle).sum(-1, keepdim=True) >= count
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    kept = torch.where((h >= high).sum(-1, keepdim=True) >= count, h >= high, h >= low)
    p = (h / temperature.unsqueeze(-1)).masked_fill(~kept, float("-inf")).softmax(-1)
    ranked = p.sort(dim=-1, descending=True).values
    inside = ((ranked.cumsum(-1) - ranked) < top_p.unsqueeze(-1)).sum(-1, keepdim=True).clamp(min=1)
    smallest = ranked.gather(-1, inside - 1)
    w = p * (p >= smallest)
    reached = w.cumsum(-1)
    token = (reached <= u.unsqueeze(-1) * reached[:, -1:]).sum(-1)
    last = width - 1 - (w > 0).flip(-1).to(torch.int32).argmax(-1)
    return torch.minimum(token, last).to(torch.int32)
