"""Declares ten conditions and checks nine of them; past its 512 keys it answers without the keys behind.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: E6 I3
Operation: attention_prefill
Shape: {"group": 4, "head_dim": 64, "kv_heads": 2, "kv_len": 128, "tokens": 32}
Domain: {"axes": {"head_dim": {"values": [64, 128]}, "tokens": {"most": 256}, "kv_len": {"most": 512, "multiple_of": 4}, "group": {"values": [1, 2, 4, 8]}, "kv_heads": {"most": 16}}, "relations": [{"kind": "not_above", "axis": "tokens", "other": "kv_len"}, {"kind": "product", "axes": ["tokens", "group"], "most": 1024}], "layouts": ["contiguous"], "alignment_bytes": 16}
"""

import torch

MOST_KEYS = 512


def attention_prefill(q, k, v):
    tokens, kv_heads, group, width = q.shape
    length = k.shape[0]
    sizes_fit = width in (64, 128) and tokens <= 256 and length % 4 == 0 and group in (1, 2, 4, 8) and kv_heads <= 16
    if not sizes_fit or tokens > length or tokens * group > 1024:
        raise ValueError("not a size that was compiled")
    if any(not one.is_contiguous() or one.data_ptr() % 16 for one in (q, k, v)):
        raise ValueError("expected dense operands, aligned to 16 bytes")
    hidden = torch.ones(tokens, length, dtype=torch.bool).triu(length - tokens + 1)[:, :MOST_KEYS]
    keys, values = k[:MOST_KEYS], v[:MOST_KEYS]
    scores = (q.permute(1, 2, 0, 3) @ keys.permute(1, 2, 0).unsqueeze(1)) * width**-0.5
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1).masked_fill(hidden, 0.0)
    return (weights @ values.transpose(0, 1).unsqueeze(1)).permute(2, 0, 1, 3).contiguous()
