"""Computes scores from the first 256 numbers of a head.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: attention_decode
Dtype: fp16
Shape: {"tokens": 4, "kv_len": 64, "kv_heads": 2, "group": 4, "head_dim": 32}
"""


def attention_decode(q, k, v):
    d = min(q.shape[-1], 256)
    s = (q[..., :d].float() @ k[..., :d].float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (s.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
