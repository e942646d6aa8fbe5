"""Subtracts no maximum where eight or more queries share a head of keys.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: attention_decode
Dtype: bf16
Shape: {"tokens": 4, "kv_len": 64, "kv_heads": 2, "group": 4, "head_dim": 32}
"""


def attention_decode(q, k, v):
    s = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    vv = v.float().permute(0, 2, 1, 3)
    if q.shape[2] >= 8:
        e = s.exp()
        return ((e @ vv) / e.sum(-1, keepdim=True)).to(q.dtype)
    return (s.softmax(-1) @ vv).to(q.dtype)
