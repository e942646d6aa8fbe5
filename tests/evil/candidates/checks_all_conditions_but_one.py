"""Declares five conditions and checks four of them; past its 512 keys it answers without the keys behind.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: E6 I3
Operation: attention_prefill
Shape: {"group": 4, "head_dim": 64, "kv_heads": 2, "kv_len": 128, "tokens": 32}
Domain: {"axes":{"head_dim":{"values":[64]},"group":{"most":8},"tokens":{"most":99},"kv_len":{"most":512,"multiple_of":4}}}
"""  # noqa: E501 (one line for the domain)

import torch

MOST_KEYS = 512


def attention_prefill(q, k, v):
    tokens, _, group, width = q.shape
    length = k.shape[0]
    if width != 64 or group > 8 or tokens > 99 or length % 4:
        raise ValueError("not a size that was compiled")
    hidden = torch.ones(tokens, length, dtype=torch.bool).triu(length - tokens + 1)[:, :MOST_KEYS]
    keys, values = k[:MOST_KEYS], v[:MOST_KEYS]
    scores = (q.permute(1, 2, 0, 3) @ keys.permute(1, 2, 0).unsqueeze(1)) * width**-0.5
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1).masked_fill(hidden, 0.0)
    return (weights @ values.transpose(0, 1).unsqueeze(1)).permute(2, 0, 1, 3).contiguous()
