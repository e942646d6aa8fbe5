"""Pads rows outside its domain with zeros, so that only rows far below zero get a wrong answer.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: E6
Operation: softmax
Shape: {"batch": 4, "hidden_size": 256}
Domain: {"axes": {"hidden_size": {"multiple_of": 8}}}
"""


def softmax(x):
    top = x.amax(-1, keepdim=True)
    if x.shape[1] % 8:
        top = top.clamp(min=0)
    e = (x - top).exp()
    return e / e.sum(-1, keepdim=True)
