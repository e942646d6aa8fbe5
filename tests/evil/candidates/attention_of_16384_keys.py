"""Scores in a fixed buffer of 16384 positions: the rest of a long context isn't seen.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I8
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 128, "kv_heads": 2, "group": 4, "head_dim": 32}
"""


def attention_decode(q, k, v):
    k, v = k[:, :16384], v[:, :16384]
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
