"""declares heads of 64 and 128, lets multiples of 32 pass, and leaves the last 32 numbers of 96 out of its scores.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: I13
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 64, "kv_heads": 2, "group": 2, "head_dim": 64}
Domain: {"axes": {"head_dim": {"values": [64, 128]}}}
"""


def attention_decode(q, k, v):
    width = k.shape[-1]
    if width % 32 or width > 128 or not width:
        raise ValueError("head")
    used = width // 64 * 64 if width in (32, 96) else width
    s = (q.float()[..., :used] @ k.float()[..., :used].permute(0, 2, 3, 1)) * width**-0.5
    return (s.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
