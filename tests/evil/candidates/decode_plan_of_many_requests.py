"""Leaves out a last partial page where nine requests and more have 2,048 keys and more

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I2
Operation: attention_decode
Dtype: bf16
Shape: {"tokens": 4, "kv_len": 256, "kv_heads": 2, "group": 4, "head_dim": 64}
"""


def attention_decode(q, k, v):
    if k.shape[0] >= 9 and k.shape[1] >= 2048:
        whole = k.shape[1] // 64 * 64
        k, v = k[:, :whole], v[:, :whole]
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
