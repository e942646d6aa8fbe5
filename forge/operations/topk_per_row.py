"""The eight largest numbers of each row and their positions, as sampling, beams and drafts take from logits.

It is torch.topk, sorted, with NaN before all numbers. The operands don't show the count, so it is fixed at eight, or
all if a row has fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Expected, Operation, Ranked

if TYPE_CHECKING:
    import torch

CHOSEN = 8
"""Number of positions that are returned for each row. Chosen; it is part of the operation's contract."""
BEYOND = 1e300
"""Number that replaces an infinity in comparisons of ranks, because inf - inf is NaN."""
SUBNORMAL = 2.0**-126
"""Smallest normal fp32 number. A kernel may treat smaller ones as zero."""
COARSE_BITS = 5
"""Number of significand bits of the mutant that ranks too coarsely: fewer than any type here has."""


def topk_per_row(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """X [batch, vocab_size] -> values [batch, 8] as x, indices [batch, 8] in int32, largest first."""
    import torch

    values, indices = x.topk(min(8, x.shape[-1]), -1)
    return values, indices.to(torch.int32)


# Return the 8 largest values [batch, 8] of x [batch, vocab_size] in fp64, and their ranked positions.
# fp64 holds each number of these dtypes exactly. The error scale is 0, since the values are copies.
def oracle(x: torch.Tensor) -> tuple[Expected, ...]:
    """The same in fp64, where every number of these types is exact."""
    import torch

    h, count = x.double(), min(CHOSEN, x.shape[-1])
    value = h.topk(count, -1).values
    comparable = h.nan_to_num(nan=math.nan, posinf=BEYOND, neginf=-BEYOND)
    ranked = Ranked(values=comparable, uncertainty=torch.full_like(h, SUBNORMAL), count=count)
    return Expectation(value=value, scale=torch.zeros_like(value), terms=1, roundings=0, on_integers="exact"), ranked


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    rows, width, element_bytes = shape["batch"], shape["vocab_size"], ITEMSIZE_BYTES[dtype]
    return rows * width * element_bytes + rows * min(CHOSEN, width) * (element_bytes + 4)


def _flops(shape: Mapping[str, int]) -> int:
    return shape["batch"] * shape["vocab_size"]


Pair = tuple["torch.Tensor", "torch.Tensor"]
Choice = Callable[["torch.Tensor"], Pair]


def _ranked_by(scores: Callable[[torch.Tensor], torch.Tensor]) -> Choice:
    """Return an operation that takes the numbers with the largest `scores`."""

    def function(x: torch.Tensor) -> Pair:
        import torch

        indices = scores(x.float()).topk(min(CHOSEN, x.shape[-1]), -1).indices
        return x.gather(-1, indices), indices.to(torch.int32)

    return function


def _coarse(h: torch.Tensor) -> torch.Tensor:
    import torch

    significand, exponent = torch.frexp(h)
    return torch.ldexp((significand * 2**COARSE_BITS).round() / 2**COARSE_BITS, exponent)


def _without_the_rest(h: torch.Tensor) -> torch.Tensor:
    """Never choose columns beyond whole blocks of 64."""
    kept = h.clone()
    kept[:, h.shape[1] // 64 * 64 :] = -math.inf
    return kept


def _largest_of_groups(h: torch.Tensor) -> torch.Tensor:
    """Take one number of each of eight interleaved groups: wrong if a group has two of the largest."""
    kept = h.clone()
    for group in range(CHOSEN):
        members = kept[:, group::CHOSEN]
        members[members < members.amax(-1, keepdim=True)] = -math.inf
    return kept


def _one_twice(x: torch.Tensor) -> Pair:
    values, indices = topk_per_row(x)
    indices[:, 1:2] = indices[:, :1]
    return values, indices


def _in_place_order(x: torch.Tensor) -> Pair:
    """Return the right numbers, but ordered by position."""
    import torch

    indices = x.topk(min(CHOSEN, x.shape[-1]), -1).indices.sort(-1).values
    return x.gather(-1, indices), indices.to(torch.int32)


def _through_the_tensor(x: torch.Tensor) -> Pair:
    """Count positions through all rows."""
    import torch

    values, indices = topk_per_row(x)
    start = torch.arange(x.shape[0], dtype=torch.int32).unsqueeze(-1) * x.shape[1]
    return values, indices + start


MUTANTS = {
    "the smallest": _ranked_by(lambda h: -h),
    "by magnitude": _ranked_by(lambda h: h.abs()),
    "ranked too coarsely": _ranked_by(_coarse),
    "the rest beyond blocks of 64 left out": _ranked_by(_without_the_rest),
    "the second half left out": _ranked_by(lambda h: h.clone().index_fill_(1, _second_half(h), -math.inf)),
    "the first column left out": _ranked_by(lambda h: h.clone().index_fill_(1, _second_half(h[:, :1]), -math.inf)),
    "the largest of eight groups": _ranked_by(_largest_of_groups),
    "ranked by the next row": _ranked_by(lambda h: h.roll(1, 0)),
    "one position twice": _one_twice,
    "in the order in which they stand": _in_place_order,
    "positions counted through all rows": _through_the_tensor,
    "indices from one": lambda x: (topk_per_row(x)[0], topk_per_row(x)[1] + 1),
    "smallest first": lambda x: tuple(one.flip(-1) for one in topk_per_row(x)),
    "indices smallest first": lambda x: (topk_per_row(x)[0], topk_per_row(x)[1].flip(-1)),
    "the largest for all ranks": lambda x: (
        topk_per_row(x)[0][:, :1].expand(-1, min(CHOSEN, x.shape[-1])),
        topk_per_row(x)[1],
    ),
}


def _second_half(h: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.arange(h.shape[1] // 2, h.shape[1])


def _sorted(x: torch.Tensor) -> Pair:
    import torch

    values, order = x.sort(dim=-1, descending=True, stable=True)
    return values[:, :CHOSEN].contiguous(), order[:, :CHOSEN].to(torch.int32).contiguous()


def _last_of_equal_ones(x: torch.Tensor) -> Pair:
    import torch

    values, order = x.flip(-1).sort(dim=-1, descending=True, stable=True)
    indices = x.shape[-1] - 1 - order[:, :CHOSEN]
    return values[:, :CHOSEN].contiguous(), indices.to(torch.int32)


VARIANTS = {"sorted": _sorted, "the last of equal ones": _last_of_equal_ones}


TOPK_PER_ROW = Operation(
    name="topk_per_row",
    summary="the eight largest numbers of each row, with their positions",
    axes=("batch", "vocab_size"),
    inputs=(TensorSpec(name="x", axes=("batch", "vocab_size")),),
    scalars={},
    outputs=(
        TensorSpec(name="values", axes=("batch", "vocab_size"), at_most={"vocab_size": CHOSEN}),
        TensorSpec(name="indices", axes=("batch", "vocab_size"), element="int32", at_most={"vocab_size": CHOSEN}),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="topk_per_row(x) -> (values, indices)",
    reference=topk_per_row,
    oracle=oracle,
    numerics=(
        "Nothing is computed: a value is a copy of an input and has no error at all, S = 0 and no rounding. "
        "What remains of the bound is that numbers below 2^-126 may be taken for zeros. An index is right if "
        "the number that stands there is its rank's, so any of several equal ones is. No index comes twice. "
        "In a row with a NaN the values have it first, and any indices will do."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "vocab_size": 128256},
        {"batch": 16, "vocab_size": 32000},
        {"batch": 64, "vocab_size": 151936},
        {"batch": 100, "vocab_size": 1001},
        {"batch": 4096, "vocab_size": 4096},
    ),
    row_axis="batch",
    reduced_axis="vocab_size",
    specials="as_reference",
    masks=True,
    relations=(RowsIndependent(), RowsPermuted(), Scaled(inputs={"x": 1}, outputs={"values": 1, "indices": 0})),
    mutants=MUTANTS,
    variants=VARIANTS,
)
