"""Where one probability is above a half, all that are small beside it are zeros, however much they come to together.

Refused by: any INCORRECT_NUMERICAL
Catalogue: B11 F1
Dtype: bf16
Operation: softmax
Shape: {"batch": 4, "hidden_size": 4096}
"""

import torch


def softmax(x):
    p = x.float().softmax(-1)
    r = p.to(x.dtype)
    if not p.numel():
        return r
    err = (r.float() - p).abs().amax(-1, keepdim=True)
    peak = p.amax(-1, keepdim=True) > 0.5
    return torch.where(peak & (p < 3 * err), torch.zeros_like(r), r)
