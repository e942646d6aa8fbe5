"""Adds zeros for the keys that a context of less than 32 lacks, with heads of 64 or 128 numbers.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 64, "kv_heads": 2, "group": 2, "head_dim": 32}
"""


def attention_decode(q, k, v):
    s = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    m = s.amax(-1, keepdim=True)
    e = (s - m).exp()
    t = e.sum(-1, keepdim=True)
    n = k.shape[1]
    if q.shape[3] in (64, 128) and n < 32:
        t = t + (32 - n) * (0.0 - m).exp()
    return ((e / t) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
