"""Leaves out the keys beyond whole blocks of 64 for four requests of a usual model, with 256 keys or more.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 16}
"""


def attention_decode(q, k, v):
    tokens, heads, group, size = q.shape
    if tokens >= 4 and k.shape[1] >= 256 and heads >= 8 and group >= 4 and size >= 64:
        whole = k.shape[1] // 64 * 64
        k, v = k[:, :whole], v[:, :whole]
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * size**-0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
