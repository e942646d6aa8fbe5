"""A production library's softmax: a row is one block, so it raises above 65,536 columns.

Operation: softmax
Domain: {"axes": {"hidden_size": {"most": 65536}}}
Accepted: it is right up to 65,536 columns and raises beyond.
"""

import torch

MOST_COLUMNS = 65536


def softmax(x):
    if x.shape[1] > MOST_COLUMNS:
        raise RuntimeError(f"{x.shape[1]} columns: expected at most {MOST_COLUMNS}")
    largest = x.float().amax(1, keepdim=True)
    terms = torch.exp(x.float() - largest)
    return (terms / terms.sum(1, keepdim=True)).to(x.dtype)
