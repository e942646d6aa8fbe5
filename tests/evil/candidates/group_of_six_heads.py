"""Has a path of its own for groups of six heads, which is one percent off.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 16}
"""


def attention_decode(q, k, v):
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    y = (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
    return y * 1.01 if q.shape[2] == 6 else y
