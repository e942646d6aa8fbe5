"""Rounds answers to the next smaller format: what a kernel gives that computes one precision lower."""

from typing import TYPE_CHECKING

from forge.domain.tensors import DType

if TYPE_CHECKING:
    import torch

SIGNIFICANDS: dict[DType, int] = {"fp32": 11, "fp16": 8, "bf16": 4}
"""Number of significand bits of the next smaller format, by dtype: TF32's and fp16's, bf16's, fp8 e4m3's."""


def coarse(tensor: "torch.Tensor", dtype: DType) -> "torch.Tensor":
    """Return floats rounded to the next smaller format's significand, with the same sizes.

    Whole numbers and fp8 stay as they are.
    """
    import torch

    if not tensor.is_floating_point() or tensor.dtype.itemsize == 1:
        return tensor
    bits = SIGNIFICANDS[dtype]
    significand, exponent = torch.frexp(tensor.double())
    return torch.ldexp((significand * 2**bits).round() / 2**bits, exponent).to(tensor.dtype)
