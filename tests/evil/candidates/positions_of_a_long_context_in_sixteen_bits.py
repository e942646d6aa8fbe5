"""Keeps positions in 16 bits: what lies beyond 65,536 keys isn't seen.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I10
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 16}
"""


def attention_decode(q, k, v):
    k, v = k[:, : 2**16], v[:, : 2**16]
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
