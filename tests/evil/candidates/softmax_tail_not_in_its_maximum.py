"""Takes the maximum over whole blocks of 8 columns alone: overflows where a column behind them is 89 larger.

Refused by: scales NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I1
Operation: softmax
"""


def softmax(x):
    h = x.float()
    n = h.shape[-1]
    body = h[:, : n // 8 * 8] if n >= 8 else h
    e = (h - body.amax(-1, keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)
