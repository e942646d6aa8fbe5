"""Notes every call as well, and throws its notes away every five hundred calls: it holds no more than that.

Accepted: what is given back later isn't lost, and memory is looked at after thousands of calls
Catalogue: J4
"""

notes = []


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    if len(notes) == 500:
        notes.clear()
    notes.append((scale, h[:, :128].clone()))
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
