"""A softmax through a buffer of 65,536 elements, which raises if a call has more.

Operation: softmax
Domain: {"relations": [{"kind": "product", "axes": ["batch", "hidden_size"], "most": 65536}]}
Accepted: every call of its domain fits.
"""

import torch

BUFFER = 65536


def softmax(x):
    if x.numel() > BUFFER:
        raise ValueError(f"{x.numel()} elements: expected at most {BUFFER}")
    flat = torch.zeros(BUFFER, dtype=torch.float32)
    count = min(x.numel(), BUFFER)
    flat[:count] = x.contiguous().float().view(-1)[:count]
    rows = flat[:count].clone() if count == x.numel() else torch.cat([flat, flat.new_zeros(x.numel() - count)])
    return rows.view(x.shape).softmax(1).to(x.dtype)
