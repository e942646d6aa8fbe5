"""The same softmax with a block of 65,535 columns: at the domain's last size one column is left out.

Operation: softmax
Domain: {"axes": {"hidden_size": {"most": 65536}}}
Twin of: softmax_up_to_65536_columns
Refused by: sizes INCORRECT_NUMERICAL
"""

import torch


def softmax(x):
    if x.shape[1] > 65536:
        raise RuntimeError("too many columns")
    y = torch.zeros_like(x)
    y[:, :65535] = x[:, :65535].float().softmax(1).to(x.dtype)
    return y
