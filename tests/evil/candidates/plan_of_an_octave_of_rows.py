"""keeps the number of blocks of more than 4096 rows for each octave of rows, as the first call had it.

Refused by: any INCORRECT_NUMERICAL
Catalogue: C1
Operation: rmsnorm
Shape: {"batch": 4, "hidden_size": 256}
"""

plans = {}


def rmsnorm(x, weight, eps):
    rows = x.shape[0]
    h = x.float()
    y = (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
    if rows > 4096:
        blocks = plans.setdefault(rows.bit_length(), -(-rows // 64))
        y[64 * blocks :] = 0
    return y
