"""Flash attention in blocks, its weights rounded to the operands' type before the second product.

Operation: attention_decode
Dtype: fp16
Shape: {"tokens": 16, "kv_len": 128, "kv_heads": 2, "group": 4, "head_dim": 32}
"""

import torch


def attention_decode(q, k, v):
    K, V = k.float().permute(0, 2, 1, 3), v.float().permute(0, 2, 1, 3)
    m = torch.full(q.shape[:-1], -float("inf")).float()
    total = torch.zeros(q.shape[:-1], dtype=torch.float32)
    o = torch.zeros(q.shape, dtype=torch.float32)
    for i in range(0, K.shape[2], 64):
        s = (q.float() @ K[:, :, i : i + 64].transpose(-1, -2)) * q.shape[-1] ** -0.5
        n = torch.maximum(m, s.amax(-1))
        p = (s - n[..., None]).exp()
        a = (m - n).exp()
        total = total * a + p.sum(-1)
        o = o * a[..., None] + p.to(q.dtype).float() @ V[:, :, i : i + 64]
        m = n
    return (o / total[..., None]).to(q.dtype)
