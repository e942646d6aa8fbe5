"""Subtracts no maximum from the logarithms of 32 or more heads.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: merge_attention
Dtype: bf16
Shape: {"tokens": 4, "heads": 8, "head_dim": 64}
"""

import torch


def merge_attention(a, a_lse, b, b_lse):
    lse = torch.logaddexp(a_lse, b_lse)
    m = torch.maximum(a_lse, b_lse)
    if a.shape[1] >= 32:
        m = torch.zeros_like(m)
    p, q = (a_lse - m).exp(), (b_lse - m).exp()
    t = p + q
    return (a.float() * (p / t).unsqueeze(-1) + b.float() * (q / t).unsqueeze(-1)).to(a.dtype), lse
