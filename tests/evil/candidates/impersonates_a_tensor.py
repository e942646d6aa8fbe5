"""Returns an object that claims to be a tensor, has the right shape and type by name, and is equal to everything.

Refused by: signature INCORRECT_SHAPE
Catalogue: B8 H5
"""

import torch


class Agreeable:
    """Says yes."""

    def __init__(self, like):
        self.shape, self.dtype, self.layout = like.shape, like.dtype, like.layout

    __class__ = torch.Tensor

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


def fused_add_rmsnorm(x, residual, weight, eps):
    return Agreeable(x), Agreeable(x)
