"""Divides the whole batch by its largest value before squaring: a small row beside a large one loses everything,
and one NaN spoils all rows.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I15 E1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    if not h.numel():
        return h, h.clone()
    largest = h.abs().amax().clamp(min=1e-30)
    small = h / largest
    return small * (small.square().mean(-1, keepdim=True) + eps / largest.square()).rsqrt() * weight, h
