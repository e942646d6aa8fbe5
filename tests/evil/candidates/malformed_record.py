"""Sends records with an unknown status and lengths that don't add up.

Refused by: signature TAMPERING
Catalogue: J18
"""

import sys


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


wire = sys.modules["guest.wire"]
honest_pack = wire.pack_record


def pack(record):
    packed = bytearray(honest_pack(record))
    if record.call_id:
        packed[12:16] = b"\xff\xff\xff\xff"
    return bytes(packed)


wire.pack_record = pack


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
