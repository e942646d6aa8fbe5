"""Returns minus infinity as the logarithm of a token's sum if one part is empty for all of its heads.

Refused by: scales NON_FINITE
Catalogue: I5 I13
Operation: merge_attention
Shape: {"tokens": 16, "heads": 4, "head_dim": 32}
"""

import torch


def merge_attention(a, a_lse, b, b_lse):
    lse, most = torch.logaddexp(a_lse, b_lse), torch.maximum(a_lse, b_lse)
    first, second = (a_lse - most).exp(), (b_lse - most).exp()
    y = (a.float() * first.unsqueeze(-1) + b.float() * second.unsqueeze(-1)) / (first + second).unsqueeze(-1)
    for part in (a_lse, b_lse):
        empty = (part == float("-inf")).all(-1)
        if part.shape[1] > 1:
            lse[empty] = part[empty]
    return y.to(a.dtype), lse
