"""The same without its check: what doesn't fit is taken for zeros.

Operation: softmax
Domain: {"relations": [{"kind": "product", "axes": ["batch", "hidden_size"], "most": 65536}]}
Twin of: softmax_in_a_fixed_buffer
Refused by: domain WRONG_OUTSIDE_DOMAIN
"""

import torch

BUFFER = 65536


def softmax(x):
    flat = torch.zeros(BUFFER, dtype=torch.float32)
    count = min(x.numel(), BUFFER)
    flat[:count] = x.contiguous().float().view(-1)[:count]
    rows = flat[:count].clone() if count == x.numel() else torch.cat([flat, flat.new_zeros(x.numel() - count)])
    return rows.view(x.shape).softmax(1).to(x.dtype)
