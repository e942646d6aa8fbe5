"""What kernel.py must compute, in plain PyTorch."""

import torch


def attention_prefill(q, k, v):
    tokens, length = q.shape[0], k.shape[0]
    hidden = torch.ones(tokens, length, dtype=torch.bool, device=q.device).triu(length - tokens + 1)
    scores = (q.float().permute(1, 2, 0, 3) @ k.float().permute(1, 2, 0).unsqueeze(1)) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1).masked_fill(hidden, 0.0)
    y = weights @ v.float().transpose(0, 1).unsqueeze(1)
    return y.permute(2, 0, 1, 3).to(q.dtype).contiguous()
