"""with 256 rows and more of more than 4096 columns, rows behind the last sixteen are left unnormalised.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: layernorm
Shape: {"batch": 4, "hidden_size": 256}
"""


def layernorm(x, weight, bias, eps):
    h = x.float()
    c = h - h.mean(-1, keepdim=True)
    y = (c * c.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)
    rows, width = x.shape
    if rows >= 256 and width > 4096 and rows % 16:
        y[rows // 16 * 16 :] = x[rows // 16 * 16 :]
    return y
