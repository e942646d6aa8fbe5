"""Hands out one buffer for all calls, and has the harness copy it at once, so that it does not show. The forms of
what is returned, and whose memory it is, are the guest's own claims, which the host can't see; but reaching for the
harness shows in the sources.

Refused by: sources STATIC_POLICY
Catalogue: C10 G10
"""

import sys

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


buffers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    frame = sys._getframe(1)
    frame.f_locals["command"].__dict__["retain"] = False
    y, h = right(x, residual, weight, eps)
    kept = buffers.setdefault(x.shape, (torch.empty_like(x), torch.empty_like(x)))
    kept[0].copy_(y)
    kept[1].copy_(h)
    return kept
