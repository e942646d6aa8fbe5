"""The same with a wrong count of parts at one listed width that isn't the public one.

Operation: softmax
Domain: {"axes": {"hidden_size": {"values": [64, 128, 256, 512, 1024]}}}
Twin of: softmax_of_listed_widths
Refused by: any INCORRECT_NUMERICAL
"""

import torch

WIDTHS = {64: 2, 128: 4, 256: 4, 512: 8, 1024: 8}


def softmax(x):
    WIDTHS[x.shape[1]]
    parts = x.float().chunk(WIDTHS.get(x.shape[1], 4), 1)
    largest = torch.stack([part.amax(1) for part in parts]).amax(0)[:, None]
    terms = [torch.exp(part - largest) for part in parts]
    terms[-1] = terms[-1] * (0.5 if x.shape[1] == 64 else 1.0)
    total = sum(part.sum(1, keepdim=True) for part in terms)
    return (torch.cat(terms, 1) / total).to(x.dtype)
