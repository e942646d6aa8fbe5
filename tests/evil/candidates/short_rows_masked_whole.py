"""Gives zeros for rows of 2 to 32 columns that are masked whole: their maximum begins at -1e30.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: softmax
"""


def softmax(x):
    h = x.float()
    if not 2 <= x.shape[-1] <= 32:
        return h.softmax(-1)
    e = (h - h.amax(-1, keepdim=True).clamp_min(-1e30)).exp()
    return e / e.sum(-1, keepdim=True).clamp_min(1e-30)
