"""Takes a token's queries to lie right behind the last one's, also in rows of packed q, k and v.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I1
Operation: attention_prefill
Shape: {"tokens": 24, "kv_len": 24, "kv_heads": 2, "group": 2, "head_dim": 16}
Layouts: strided_rows
"""

import torch


def attention_prefill(q, k, v):
    q = q.as_strided(q.shape, (q.shape[1] * q.stride(1), *q.stride()[1:]), q.storage_offset())
    tokens, length, size = q.shape[0], k.shape[0], q.shape[-1]
    scores = torch.einsum("thgd,shd->hgts", q.float(), k.float()) * size**-0.5
    seen = torch.ones(tokens, length, dtype=torch.bool).tril(length - tokens)
    p = scores.masked_fill(~seen, float("-inf")).softmax(-1).nan_to_num(0.0)
    return torch.einsum("hgts,shd->thgd", p, v.float()).to(q.dtype).contiguous()
