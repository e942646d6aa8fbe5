"""For heads of 512 numbers or more it has 512 places for scores, and leaves out the keys beyond them.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 64}
"""


def attention_decode(q, k, v):
    if q.shape[-1] >= 512:
        k, v = k[:, :512], v[:, :512]
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
