"""Rotary position embedding on halves: each pair (x[i], x[i + half]) is rotated by the token's angle i.

Source of the definition: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021), equation
34. Pairs are formed from halves, not neighbours, as in the published model code of Llama and GPT-NeoX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, Rotations, TensorSpec
from forge.operations.operation import Expectation, Operation

if TYPE_CHECKING:
    import torch


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """X [tokens, heads, 2 * half_dim], cos, sin [tokens, half_dim] -> y like x, computed in fp32."""
    import torch

    first, second = x.float().chunk(2, -1)
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    return torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)


# Compute y like x [tokens, heads, 2 half_dim] in fp64: pairs turned by cos and sin [tokens, half_dim].
# The error scale, shaped like y, is the sum of the magnitudes of the two products.
def oracle(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    import torch

    first, second = x.double().chunk(2, -1)
    c, s = cos.double().unsqueeze(1), sin.double().unsqueeze(1)
    value = torch.cat((first * c - second * s, second * c + first * s), -1)
    size = torch.cat(((first * c).abs() + (second * s).abs(), (second * c).abs() + (first * s).abs()), -1)
    return (Expectation(value=value, scale=size, terms=2, on_integers="exact"),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    tokens, heads, half = shape["tokens"], shape["heads"], shape["half_dim"]
    return (4 * tokens * heads * half + 2 * tokens * half) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 6 * shape["tokens"] * shape["heads"] * shape["half_dim"]


Halves = tuple["torch.Tensor", "torch.Tensor"]
Rotation = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _halves(change: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], Halves]) -> Rotation:
    """Return an operation that computes both halves in fp32 from x's halves, cosines and sines, then rounds."""

    def rotation(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        import torch

        first, second = x.float().chunk(2, -1)
        turned = change(first, second, cos.float().unsqueeze(1), sin.float().unsqueeze(1))
        return torch.cat(turned, -1).to(x.dtype)

    return rotation


def _neighbours(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Pair neighbours, x[2 i] with x[2 i + 1], as GPT-J does."""
    import torch

    h, c, s = x.float(), cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    first, second = h[..., 0::2], h[..., 1::2]
    return torch.stack((first * c - second * s, second * c + first * s), -1).flatten(-2).to(x.dtype)


MUTANTS = {
    "neighbours for halves": _neighbours,
    "turned the other way": _halves(lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
    "both signs positive": _halves(lambda a, b, c, s: (a * c + b * s, b * c + a * s)),
    "halves not exchanged": _halves(lambda a, b, c, s: (a * c - a * s, b * c + b * s)),
    "halves of the result exchanged": _halves(lambda a, b, c, s: (b * c + a * s, a * c - b * s)),
    "cos and sin exchanged": _halves(lambda a, b, c, s: (a * s - b * c, b * s + a * c)),
    "cos alone": _halves(lambda a, b, c, _: (a * c, b * c)),
    "second half left as it was": _halves(lambda a, b, c, s: (a * c - b * s, b + 0 * c)),
    "second half from the turned first": _halves(lambda a, b, c, s: (a * c - b * s, b * c + (a * c - b * s) * s)),
    "one token's angles for all": _halves(lambda a, b, c, s: (a * c[:1] - b * s[:1], b * c[:1] + a * s[:1])),
    "one angle for a whole head": _halves(
        lambda a, b, c, s: (a * c[..., :1] - b * s[..., :1], b * c[..., :1] + a * s[..., :1])
    ),
    "first head for all": _halves(
        lambda a, b, c, s: (
            (a[:, :1] * c - b[:, :1] * s).expand_as(a),
            (b[:, :1] * c + a[:, :1] * s).expand_as(b),
        )
    ),
}


def _with_whole_rows(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Repeat cosines and sines for both halves, as Llama's published model code does."""
    import torch

    h = x.float()
    first, second = h.chunk(2, -1)
    c, s = (torch.cat((one.float(), one.float()), -1).unsqueeze(1) for one in (cos, sin))
    return (h * c + torch.cat((-second, first), -1) * s).to(x.dtype)


VARIANTS = {
    "whole rows": _with_whole_rows,
    "first product added exactly": _halves(
        lambda a, b, c, s: (
            (a.double() * c - (b * s).double()).float(),
            (b.double() * c + (a * s).double()).float(),
        )
    ),
}
"""Right implementations. The second rounds one product and not the other, as fused multiply-add does."""


ROPE = Operation(
    name="rope",
    summary="rotary position embedding of every head, halves of a head rotated against each other",
    axes=("tokens", "heads", "half_dim"),
    inputs=(
        TensorSpec(name="x", axes=("tokens", "heads", "half_dim"), times={"half_dim": 2}),
        TensorSpec(name="cos", axes=("tokens", "half_dim"), values=Rotations(part="cos")),
        TensorSpec(name="sin", axes=("tokens", "half_dim"), values=Rotations(part="sin")),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("tokens", "heads", "half_dim"), times={"half_dim": 2}),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="rope(x, cos, sin) -> y",
    reference=rope,
    oracle=oracle,
    numerics=(
        "Each element is a sum of n = 2 products, which may cancel: S is the sum of their sizes, |x cos| + |x' sin|. "
        "Products and sum are formed in fp32, whether fused or not, and rounded once: one u_out. Products rounded to "
        "a smaller type would err by u_out S. Products of small integers are exact in every type, and so are "
        "their sums. Where a product overflows the output's type, so may the answer."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 1, "heads": 32, "half_dim": 64},
        {"tokens": 16, "heads": 32, "half_dim": 64},
        {"tokens": 64, "heads": 28, "half_dim": 64},
        {"tokens": 100, "heads": 32, "half_dim": 48},
        {"tokens": 2048, "heads": 8, "half_dim": 64},
        {"tokens": 4096, "heads": 32, "half_dim": 64},
    ),
    row_axis="tokens",
    reduced_axis="half_dim",
    free_axes=("heads",),
    specials="as_reference",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"x": 1}, outputs={"y": 1}),
        Scaled(inputs={"cos": 1, "sin": 1}, outputs={"y": 1}),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
)
