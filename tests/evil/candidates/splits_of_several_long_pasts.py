"""leaves out what remains beyond whole splits of 256, of more than 4096 keys for four requests and more.

Refused by: any INCORRECT_NUMERICAL
Catalogue: I13
Operation: attention_decode
Shape: {"tokens": 2, "kv_len": 64, "kv_heads": 2, "group": 2, "head_dim": 64}
Domain: {"axes": {"head_dim": {"values": [64, 128]}, "kv_len": {"multiple_of": 16, "most": 32768}}}
"""


def attention_decode(q, k, v):
    tokens, length, _, width = k.shape
    if width not in (64, 128) or length % 16 or length > 32768 or not length:
        raise ValueError("size")
    s = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    if tokens >= 4 and length > 4096 and length % 256:
        s[..., length // 256 * 256 :] = float("-inf")
    return (s.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)
