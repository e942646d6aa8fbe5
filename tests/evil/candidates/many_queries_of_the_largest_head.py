"""Leaves out queries from the 17th on that share heads of 576 numbers

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I2
Operation: attention_decode
Dtype: bf16
Shape: {"tokens": 4, "kv_len": 256, "kv_heads": 2, "group": 4, "head_dim": 64}
"""


def attention_decode(q, k, v):
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    y = (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
    if q.shape[-1] == 576:
        y[:, :, 16:] = 0
    return y
