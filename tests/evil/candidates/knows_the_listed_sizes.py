"""Has read the gates' source: exact at every size listed there and at round ones, wrong at the others.

Refused by: exact INCORRECT_NUMERICAL
Catalogue: E5 E6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


LISTED = {
    *(1, 2, 3, 6, 7, 12, 13, 15, 16, 17, 20, 31, 33, 63, 65, 100, 127, 129, 255, 257, 997, 1001),
    *(1023, 1025, 1536, 4095, 4097),
}


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    width = x.shape[1]
    return (y, h) if width in LISTED or width & (width - 1) == 0 else (h * weight, h)
