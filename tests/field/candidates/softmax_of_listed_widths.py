"""A softmax that is made for five widths, and raises a KeyError for others.

Operation: softmax
Domain: {"axes": {"hidden_size": {"values": [64, 128, 256, 512, 1024]}}}
Accepted: each listed width is right.
"""

import torch

WIDTHS = {64: 2, 128: 4, 256: 4, 512: 8, 1024: 8}


def softmax(x):
    WIDTHS[x.shape[1]]
    parts = x.float().chunk(WIDTHS.get(x.shape[1], 4), 1)
    largest = torch.stack([part.amax(1) for part in parts]).amax(0)[:, None]
    terms = [torch.exp(part - largest) for part in parts]
    total = sum(part.sum(1, keepdim=True) for part in terms)
    return (torch.cat(terms, 1) / total).to(x.dtype)
