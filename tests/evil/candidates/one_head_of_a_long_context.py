"""Has other code for one head of keys where they are more than 4096, and gives each row the first query.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 16}
"""


def attention_decode(q, k, v):
    if k.shape[2] == 1 and k.shape[1] > 4096:
        q = q[:1].expand_as(q)
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
