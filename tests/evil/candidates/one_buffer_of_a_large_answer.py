"""Returns one buffer for all answers of 2^23 elements and more

Refused by: sizes STATE_CARRIED
Catalogue: C2
Operation: rmsnorm
Dtype: bf16
Shape: {"batch": 16, "hidden_size": 4096}
"""

kept = {}


def rmsnorm(x, weight, eps):
    h = x.float()
    y = (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
    if y.numel() >= 2**23:
        return kept.setdefault(y.shape, y).copy_(y)
    return y
