"""Keeps every answer to a single row in a list.

Refused by: leaks RESOURCE_ABUSE
Catalogue: I13
Operation: softmax
Shape: {"batch": 4, "hidden_size": 64}
"""

kept = []


def softmax(x):
    y = x.float().softmax(-1).to(x.dtype)
    if x.shape[0] == 1:
        kept.append(y)
    return y
