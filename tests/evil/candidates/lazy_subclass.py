"""Returns a subclass that delays the work until the tensor is read.

Refused by: signature INCORRECT_SHAPE
Catalogue: H5
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


class Lazy(torch.Tensor):
    """Computes on first touch, if ever."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = [a.compute() if isinstance(a, Lazy) else a for a in args]
        return function(*plain, **(kwargs or {}))

    def compute(self):
        return self.pending()


def lazy(pending, like):
    promised = like.as_subclass(Lazy)
    promised.pending = pending
    return promised


def fused_add_rmsnorm(x, residual, weight, eps):
    y = lazy(lambda: right(x, residual, weight, eps)[0], torch.empty_like(x))
    h = lazy(lambda: right(x, residual, weight, eps)[1], torch.empty_like(x))
    return y, h
