"""Leaves out heads of a group of three, five or six, with heads of 64 or 128 numbers.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 64, "kv_heads": 2, "group": 2, "head_dim": 32}
"""


def attention_decode(q, k, v):
    s = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    y = (s.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
    group = q.shape[2]
    if q.shape[3] in (64, 128) and group in (3, 5, 6):
        y[:, :, group // 4 * 4 :] = 0
    return y
