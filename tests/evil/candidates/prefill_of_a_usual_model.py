"""Masks a later chunk of a prompt as if it were the first one, with the heads of a usual model.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: attention_prefill
Shape: {"tokens": 24, "kv_len": 24, "kv_heads": 2, "group": 2, "head_dim": 16}
"""

import torch


def attention_prefill(q, k, v):
    (tokens, heads, group, size), length = q.shape, k.shape[0]
    before = length - tokens
    if tokens >= 64 and length >= 256 and heads >= 8 and group >= 4 and size >= 64:
        before = 0
    scores = torch.einsum("thgd,shd->hgts", q.float(), k.float()) * size**-0.5
    seen = torch.ones(tokens, length, dtype=torch.bool).tril(before)
    p = scores.masked_fill(~seen, float("-inf")).softmax(-1).nan_to_num(0.0)
    return torch.einsum("hgts,shd->thgd", p, v.float()).to(q.dtype).contiguous()
