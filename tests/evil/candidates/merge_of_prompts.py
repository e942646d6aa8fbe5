"""Leaves the rows beyond whole fours as the first part, for 512 tokens or more of 16 heads or more.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: merge_attention
Shape: {"tokens": 16, "heads": 4, "head_dim": 32}
"""

import torch


def merge_attention(a, a_lse, b, b_lse):
    lse, most = torch.logaddexp(a_lse, b_lse), torch.maximum(a_lse, b_lse)
    first, second = (a_lse - most).exp(), (b_lse - most).exp()
    y = (a.float() * first.unsqueeze(-1) + b.float() * second.unsqueeze(-1)) / (first + second).unsqueeze(-1)
    if a.shape[0] >= 512 and a.shape[1] >= 16 and a.shape[2] >= 64:
        done = a.shape[0] // 4 * 4
        y[done:], lse[done:] = a[done:].float(), a_lse[done:]
    return y.to(a.dtype), lse
