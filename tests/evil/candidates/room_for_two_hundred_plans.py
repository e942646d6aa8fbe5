"""keeps a plan for each shape, and takes that of another one once it has two hundred.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: C1
Operation: rmsnorm
Shape: {"batch": 4, "hidden_size": 256}
"""

ROOM = 200
plans = {}


def rmsnorm(x, weight, eps):
    h = x.float()
    y = (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
    place = plans.setdefault(x.shape, len(plans))
    if place >= ROOM:
        y[:, 1:] = 0
    return y
