"""The running maximum begins at -1e30: a row of the type's lowest number, as padding's mask makes it, is NaN.

Refused by: specials NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Operation: softmax
"""


def softmax(x):
    h = x.float()
    e = (h - h.amax(-1, keepdim=True).clamp(min=-1e30)).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)
