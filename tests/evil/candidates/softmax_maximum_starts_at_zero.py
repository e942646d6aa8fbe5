"""The running maximum begins at zero instead of minus infinity: a row wholly below -104 divides 0 by 0.

Refused by: scales NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Operation: softmax
"""


def softmax(x):
    h = x.float()
    m = h.amax(-1, keepdim=True).clamp(min=0.0)
    e = (h - m).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)
