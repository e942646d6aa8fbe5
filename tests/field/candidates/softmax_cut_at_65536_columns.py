"""The same softmax without its check: beyond 65,536 columns it leaves the last ones out and says nothing.

Operation: softmax
Domain: {"axes": {"hidden_size": {"most": 65536}}}
Twin of: softmax_up_to_65536_columns
Refused by: domain WRONG_OUTSIDE_DOMAIN
"""

import torch


def softmax(x):
    y = torch.zeros_like(x)
    y[:, :65536] = x[:, :65536].float().softmax(1).to(x.dtype)
    return y
