"""Notes what every call was about, as debugging code does that was left in.

Refused by: leaks RESOURCE_ABUSE or OUT_OF_MEMORY
Catalogue: J4
"""

notes = []


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    notes.append((scale, x.clone(), residual.clone(), h))
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
