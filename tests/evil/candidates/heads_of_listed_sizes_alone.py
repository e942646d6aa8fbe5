"""Is right for heads of 64, 128 and up to 20 numbers, as the listed workloads have, and takes others for 64.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 16}
"""


def attention_decode(q, k, v):
    listed = q.shape[-1] <= 20 or q.shape[-1] in (64, 128)
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * (q.shape[-1] if listed else 64) ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
