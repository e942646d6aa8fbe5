"""Takes the mean of the squares over every other column.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: E2
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return h * h[:, ::2].square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
