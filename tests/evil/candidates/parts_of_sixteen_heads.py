"""Keeps parts of a context of more than 1024 keys by token with room for sixteen heads of a group: more overlap.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I8
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 16}
"""


def attention_decode(q, k, v):
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    y = (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
    if k.shape[1] > 1024 and q.shape[0] > 1 and q.shape[2] > 16:
        over = q.shape[2] - 16
        y[:-1, :, 16:] = y[1:, :, :over] if over <= q.shape[2] else 0
    return y
