"""Has tiles of 64 numbers of v for chunks of 64 tokens and more; a head's numbers beyond stay zero.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: attention_prefill
Shape: {"tokens": 32, "kv_len": 128, "kv_heads": 2, "group": 4, "head_dim": 64}
"""

import torch


def attention_prefill(q, k, v):
    tokens, length = q.shape[0], k.shape[0]
    hidden = torch.ones(tokens, length, dtype=torch.bool).triu(length - tokens + 1)
    scores = (q.float().permute(1, 2, 0, 3) @ k.float().permute(1, 2, 0).unsqueeze(1)) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1).masked_fill(hidden, 0.0)
    y = (weights @ v.float().transpose(0, 1).unsqueeze(1)).permute(2, 0, 1, 3).to(q.dtype).contiguous()
    if tokens >= 64:
        y[..., 64:] = 0
    return y
