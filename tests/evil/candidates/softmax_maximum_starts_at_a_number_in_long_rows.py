"""In rows of 4096 to 16384 columns the running maximum begins at -1e30: a row of the lowest number is NaN.

Refused by: specials NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Operation: softmax
"""


def softmax(x):
    h = x.float()
    largest = h.amax(-1, keepdim=True)
    if 4096 <= h.shape[-1] <= 16384:
        largest = largest.clamp(min=-1e30)
    e = (h - largest).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)
