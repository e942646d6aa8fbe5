"""Keeps a plan for each page of 64 keys beyond 4,160, so that the newest keys are not seen until it is full

Refused by: sequences INCORRECT_NUMERICAL
Catalogue: C1
Operation: attention_decode
Dtype: bf16
Shape: {"tokens": 4, "kv_len": 300, "kv_heads": 2, "group": 4, "head_dim": 64}
"""

plans = {}


def attention_decode(q, k, v):
    tokens, heads, group, size = q.shape
    length = k.shape[1]
    if length > 4160:
        pages = -(-length // 64)
        key = tokens, heads, group, size, pages
        if key not in plans:
            if len(plans) >= 256:
                plans.clear()
            plans[key] = length
        seen = min(length, plans[key])
        k, v = k[:, :seen], v[:, :seen]
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * size**-0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
