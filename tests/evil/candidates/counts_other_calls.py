"""Has the harness say that it made more calls than were asked.

Refused by: signature TAMPERING
Catalogue: G2 J18
"""

import sys


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


channel = sys.modules["guest.channel"]
honest_reply = channel.reply


def reply(call_id, status, *, completed=0, outputs=()):
    honest_reply(call_id, status, completed=completed + 1 if call_id else 0, outputs=outputs)


channel.reply = reply


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
