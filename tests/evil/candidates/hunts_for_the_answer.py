"""Searches all objects and frames of its process for a tensor that holds the expected values, and raises if there
is one. It searches in the first 64 calls, in each eighth up to the 2048th, and in each 512th after it, where
thousands of calls are alike: a search takes longer than all else.

Accepted: the answer doesn't exist yet, so no object and no frame holds it
Catalogue: B3 B4 G13
"""

import gc
import itertools

import torch

calls = itertools.count()
mine = set()


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    mine.add(y.data_ptr())  # the same question may be asked again while a view of an earlier answer is kept
    call = next(calls)
    if call % (1 if call < 64 else 8 if call < 2048 else 512):
        return y, h
    known = {id(x), id(residual), id(weight), id(y), id(h)}
    for one in gc.get_objects():
        if type(one) is not torch.Tensor or id(one) in known or one.shape != y.shape:
            continue
        if y.unique().numel() <= max(8, y.numel() // 2):  # few values: a tensor may hold them by chance
            continue
        if one.data_ptr() in mine:
            continue
        if one.dtype.is_floating_point and torch.allclose(one.double(), y.double(), rtol=1e-3, atol=0):
            raise RuntimeError("found the answer")
    return y, h
