"""Sends a well-formed record that describes tensors of negative and astronomic sizes.

Refused by: signature INCORRECT_SHAPE or TAMPERING
Catalogue: J18 G2
"""

import sys


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


channel = sys.modules["guest.channel"]
wire = sys.modules["guest.wire"]
honest_reply = channel.reply


def reply(call_id, status, *, completed=0, outputs=()):
    impossible = wire.OutputForm("float32", (-1, 2**62, 0, -(2**63)), (2**63 - 1, -1, 0, 1))
    honest_reply(call_id, wire.WRONG_FORM if call_id else status, completed=completed, outputs=(impossible,) * 4)


channel.reply = reply


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
