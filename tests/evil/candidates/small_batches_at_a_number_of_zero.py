"""Takes the first token for a random number of zero, in batches below 32

Refused by: numerics INCORRECT_NUMERICAL
Catalogue: I1
Operation: sampling
Shape: {"batch": 4, "vocab_size": 1000}
"""

import torch


def sampling(logits, temperature, top_k, top_p, u):
    h, vocab_size = logits.float(), logits.shape[-1]
    ranked = h.sort(dim=-1, descending=True).values
    count = torch.where((top_k <= 0) | (top_k > vocab_size), vocab_size, top_k).long()
    smallest = ranked.gather(-1, count.unsqueeze(-1) - 1)
    heat = temperature.unsqueeze(-1)
    p = (ranked / heat).masked_fill(ranked < smallest, float("-inf")).softmax(-1)
    inside = ((p.cumsum(-1) - p) < top_p.unsqueeze(-1)).sum(-1, keepdim=True).clamp(min=1)
    smallest = torch.maximum(smallest, ranked.gather(-1, inside - 1))
    reached = (h / heat).masked_fill(h < smallest, float("-inf")).softmax(-1).cumsum(-1)
    aim = u.unsqueeze(-1) * reached[:, -1:]
    below = reached < aim if h.shape[0] < 32 else reached <= aim
    token = below.sum(-1)
    last = vocab_size - 1 - (h >= smallest).flip(-1).to(torch.int32).argmax(-1)
    return torch.minimum(token, last).to(torch.int32)
