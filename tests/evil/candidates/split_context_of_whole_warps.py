"""Splits contexts of more than 1024 keys, and joins the parts in whole groups of 32 numbers of a head.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 128, "kv_heads": 2, "group": 4, "head_dim": 64}
"""


def attention_decode(q, k, v):
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    y = (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
    if k.shape[1] > 1024:
        y[..., max(32, q.shape[-1] // 32 * 32) :] = 0
    return y
