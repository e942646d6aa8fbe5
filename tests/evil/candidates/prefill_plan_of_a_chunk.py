"""Keeps the past of the first chunk of a length, beyond 1,024 tokens

Refused by: sequences INCORRECT_NUMERICAL
Catalogue: C1
Operation: attention_prefill
Dtype: bf16
Shape: {"tokens": 48, "kv_len": 96, "kv_heads": 2, "group": 4, "head_dim": 64}
"""

import torch

plans = {}


def attention_prefill(q, k, v):
    (tokens, heads, group, size), length = q.shape, k.shape[0]
    before = length - tokens
    if tokens > 1025:
        if len(plans) >= 256:
            plans.clear()
        before = plans.setdefault((tokens, heads, group, size), before)
    scores = torch.einsum("thgd,shd->hgts", q.float(), k.float()) * size**-0.5
    seen = torch.ones(tokens, length, dtype=torch.bool).tril(before)
    p = scores.masked_fill(~seen, float("-inf")).softmax(-1).nan_to_num(0.0)
    return torch.einsum("hgts,shd->thgd", p, v.float()).to(q.dtype).contiguous()
