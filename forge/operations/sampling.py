"""The next token, drawn from logits with temperature, top-k and top-p by a given number from 0 to 1.

A random answer can't be compared with an expected one, so the random number u is an operand. The weights are the
softmax probabilities that the filters keep, in the order of the tokens' numbers. The answer is the first token whose
running sum of weights exceeds the share u of their total. This is inverse transform sampling: Devroye, "Non-Uniform
Random Variate Generation" (1986), section II.2.

Filters are in the usual order: temperature, then top-k, then top-p over the rest (Holtzman et al., "The Curious Case
of Neural Text Degeneration", 2020). Tokens with equal logits are kept or dropped together, as FlashInfer's pivots and
vLLM's top-k mask do. So no answer depends on how a sort breaks ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, Between, Chance, Counts, DType, TensorSpec
from forge.operations.operation import Drawn, Expected, Operation

if TYPE_CHECKING:
    import torch

BESIDE_THE_SUM = 8.0
"""Constant added to sqrt(n) in the error bound, for the steps besides the sum, as in docs/numerics.md."""


def sampling(
    logits: torch.Tensor, temperature: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, u: torch.Tensor
) -> torch.Tensor:
    """Logits [batch, vocab_size], the others [batch] -> token [batch] in int32.

    The top_k largest logits (0: all) and those equal to the last of them are kept. Of these, at the temperature, only
    the tokens stay that are preceded by less than top_p of the probability (1 and more: all). The token is the first
    up to which the probability of what is kept exceeds u.
    """
    import torch

    h, vocab_size = logits.float(), logits.shape[-1]
    ranked = h.sort(dim=-1, descending=True).values
    count = torch.where((top_k <= 0) | (top_k > vocab_size), vocab_size, top_k).long()
    smallest = ranked.gather(-1, count.unsqueeze(-1) - 1)
    heat = temperature.unsqueeze(-1)
    p = (ranked / heat).masked_fill(ranked < smallest, float("-inf")).softmax(-1)
    inside = ((p.cumsum(-1) - p) < top_p.unsqueeze(-1)).sum(-1, keepdim=True).clamp(min=1)
    smallest = torch.maximum(smallest, ranked.gather(-1, inside - 1))
    reached = (h / heat).masked_fill(h < smallest, float("-inf")).softmax(-1).cumsum(-1)
    token = (reached <= u.unsqueeze(-1) * reached[:, -1:]).sum(-1)
    last = vocab_size - 1 - (h >= smallest).flip(-1).to(torch.int32).argmax(-1)
    return torch.minimum(token, last).to(torch.int32)


# Compute the weight in fp64 of each token [batch, vocab_size], from logits like it and four operands [batch].
# Near an edge of top_k or top_p the bound can't tell whether a token is kept. Such tokens are allowed too, and their
# weight is part of the uncertainty [batch] of the sums that u is compared with.
def oracle(
    logits: torch.Tensor, temperature: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, u: torch.Tensor
) -> tuple[Expected, ...]:
    """The same in fp64: the weights, and what more may be kept or dropped where an edge is too near to be told."""
    import torch

    unit = UNIT_ROUNDOFF["fp32"]
    h, heat = logits.double(), temperature.double().unsqueeze(-1)
    ranked = h.sort(dim=-1, descending=True).values
    largest = ranked[:, :1]
    powers = ((h - largest) / heat).exp()
    doubt = torch.where(h < largest, 2 * (h.abs() + largest.abs()) / heat, 0.0) * unit
    erring = (powers * doubt.expm1().clamp(max=1.0)).sum(-1) / powers.sum(-1)
    sums = 2 * erring + unit * 4 * (math.sqrt(h.shape[-1]) + BESIDE_THE_SUM)
    limits = _smallest(ranked, heat, top_k, top_p.double(), [side * sums for side in (0, 1, -1)])
    weights, wide, narrow = (powers.masked_fill(h < smallest, 0.0) for smallest in limits)
    unsettled = (wide - narrow).sum(-1) / weights.sum(-1)
    return (Drawn(weights=weights, allowed=wide > 0, share=u.double(), uncertainty=2 * (sums + unsettled)),)


def _smallest(
    ranked: torch.Tensor, heat: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, more: list[torch.Tensor]
) -> list[torch.Tensor]:
    """Return the smallest logit that is kept, once for each number of `more`, which is added to top-p.

    If the number is above zero, logits that an honest kernel may not tell from the last kept one are also kept.
    """
    import torch

    powers = ((ranked - ranked[:, :1]) / heat).exp()
    reached = powers.cumsum(-1)
    count = torch.where((top_k <= 0) | (top_k > ranked.shape[-1]), ranked.shape[-1], top_k).long()
    found = []
    for one in more:
        apart = UNIT_ROUNDOFF["fp32"] * (one > 0).unsqueeze(-1)
        smallest = ranked.gather(-1, count.unsqueeze(-1) - 1)
        smallest = smallest - apart * (2 * smallest.abs() + 4 * heat)
        among = (ranked >= smallest).sum(-1, keepdim=True)
        edge = (top_p + one).unsqueeze(-1) * reached.gather(-1, among - 1)
        inside = (reached - powers < edge).sum(-1, keepdim=True).clamp(min=1).minimum(among)
        last = ranked.gather(-1, inside - 1)
        found.append(torch.maximum(smallest, last - apart * (2 * last.abs() + 4 * heat)))
    return found


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return shape["batch"] * (shape["vocab_size"] * ITEMSIZE_BYTES[dtype] + 5 * 4)


def _flops(shape: Mapping[str, int]) -> int:
    return 8 * shape["batch"] * shape["vocab_size"]


Draw = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]
Change = Callable[["torch.Tensor"], "torch.Tensor"]
Filter = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Function from probabilities [batch, vocab_size] and the filter's numbers [batch, 1] to filtered probabilities."""


def _top_k(p: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    import torch

    size = p.shape[-1]
    ranked = p.sort(dim=-1, descending=True).values
    count = torch.where((k <= 0) | (k > size), size, k).long()
    return p * (p >= ranked.gather(-1, count - 1))


def _top_p(p: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
    ranked = p.sort(dim=-1, descending=True).values
    before = ranked.cumsum(-1) - ranked
    inside = (before < most * ranked.sum(-1, keepdim=True)).sum(-1, keepdim=True).clamp(min=1)
    return p * (p >= ranked.gather(-1, inside - 1))


def _token(p: torch.Tensor, u: torch.Tensor, accumulate: Change, total: Change | None = None) -> torch.Tensor:
    import torch

    reached = accumulate(p)
    whole = reached[:, -1:] if total is None else total(p)
    token = (reached <= u * whole).sum(-1)
    last = p.shape[-1] - 1 - (p > 0).flip(-1).to(torch.int32).argmax(-1)
    return torch.minimum(token, last).to(torch.int32)


def _summed(p: torch.Tensor) -> torch.Tensor:
    return p.cumsum(-1)


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _draws(
    heat: Change = _same,
    k: Change = _same,
    most: Change = _same,
    chance: Change = _same,
    filters: tuple[tuple[Filter, str], ...] = ((_top_k, "k"), (_top_p, "p")),
    accumulate: Change = _summed,
    total: Change | None = None,
) -> Draw:
    """Return sampling over probabilities in fp32 with one step replaced."""

    def function(
        logits: torch.Tensor, temperature: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, u: torch.Tensor
    ) -> torch.Tensor:
        h = logits.float()
        p = ((h - h.amax(-1, keepdim=True)) / heat(temperature).unsqueeze(-1)).softmax(-1)
        numbers = {"k": k(top_k).unsqueeze(-1), "p": most(top_p).unsqueeze(-1)}
        for one, name in filters:
            p = one(p, numbers[name])
        return _token(p, chance(u).unsqueeze(-1), accumulate, total)

    return function


def _rounded_as_it_grows(p: torch.Tensor) -> torch.Tensor:
    """Round each partial sum to bf16."""
    import torch

    return p.cumsum(-1).to(torch.bfloat16).float()


def _strictly_inside(p: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
    """Drop the token that reaches top-p, but keep the largest."""
    ranked = p.sort(dim=-1, descending=True).values
    inside = (ranked.cumsum(-1) <= most * ranked.sum(-1, keepdim=True)).sum(-1, keepdim=True).clamp(min=1)
    return p * (p >= ranked.gather(-1, inside - 1))


def _at_least(p: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
    """Use top-p as the smallest probability to keep, besides the largest token."""
    return p * (p >= (1 - most) * p.amax(-1, keepdim=True))


def _largest_first(
    logits: torch.Tensor, temperature: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, u: torch.Tensor
) -> torch.Tensor:
    """Draw from the same distribution with the tokens in another order."""
    import torch

    order = logits.float().argsort(dim=-1, descending=True)
    place = sampling(logits.gather(-1, order), temperature, top_k, top_p, u)
    return order.gather(-1, place.long().unsqueeze(-1)).squeeze(-1).to(torch.int32)


MUTANTS: dict[str, Draw] = {
    "always the largest": lambda logits, *_: logits.float().argmax(-1).int(),
    "no temperature": _draws(heat=lambda t: t * 0 + 1),
    "times the temperature": _draws(heat=lambda t: 1 / t),
    "the first row's temperature": _draws(heat=lambda t: t[:1].expand_as(t)),
    "no top-k": _draws(filters=((_top_p, "p"),)),
    "one too many": _draws(k=lambda k: k + (k > 0).to(k.dtype)),
    "one too few": _draws(k=lambda k: k - (k > 1).to(k.dtype)),
    "top-k of zero is one": _draws(k=lambda k: k.clamp(min=1)),
    "no top-p": _draws(filters=((_top_k, "k"),)),
    "top-p before top-k": _draws(filters=((_top_p, "p"), (_top_k, "k"))),
    "the token that reaches top-p dropped": _draws(filters=((_top_k, "k"), (_strictly_inside, "p"))),
    "a least probability for top-p": _draws(filters=((_top_k, "k"), (_at_least, "p"))),
    "top-p of what is dropped": _draws(most=lambda most: 1 - most),
    "not normalised after the filters": _draws(total=lambda p: p[:, :1] * 0 + 1),
    "the next row's number": _draws(chance=lambda u: u.roll(1)),
    "one less the number": _draws(chance=lambda u: 1 - u),
    "half of the number": _draws(chance=lambda u: u / 2),
    "the number squared": _draws(chance=lambda u: u * u),
    "sums rounded to bf16": _draws(accumulate=_rounded_as_it_grows),
    "drawn largest first": _largest_first,
    "all that are kept alike": _draws(filters=((_top_k, "k"), (_top_p, "p"), (lambda p, _: (p > 0).float(), "p"))),
    "the token before": lambda *operands: (sampling(*operands) - 1).clamp(min=0),
}


def _in_double(
    logits: torch.Tensor, temperature: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, u: torch.Tensor
) -> torch.Tensor:
    """Compute everything in fp64."""
    h = logits.double()
    p = ((h - h.amax(-1, keepdim=True)) / temperature.double().unsqueeze(-1)).softmax(-1)
    kept = _top_p(_top_k(p, top_k.unsqueeze(-1)), top_p.double().unsqueeze(-1))
    return _token(kept, u.double().unsqueeze(-1), _summed)


def _sums_in_blocks(p: torch.Tensor) -> torch.Tensor:
    """Sum within blocks of 64, then over the blocks, as a kernel's warps do."""
    import torch

    blocks = torch.nn.functional.pad(p, (0, -p.shape[-1] % 64)).unflatten(-1, (-1, 64))
    before = torch.nn.functional.pad(blocks.sum(-1).cumsum(-1)[:, :-1], (1, 0))
    return (blocks.cumsum(-1) + before.unsqueeze(-1)).flatten(-2)[:, : p.shape[-1]]


VARIANTS: dict[str, Draw] = {
    "in fp64": _in_double,
    "over probabilities, sums in blocks": _draws(accumulate=_sums_in_blocks),
}


SAMPLING = Operation(
    name="sampling",
    summary="the next token, drawn with temperature, top-k and top-p by a given number",
    axes=("batch", "vocab_size"),
    inputs=(
        TensorSpec(name="logits", axes=("batch", "vocab_size")),
        TensorSpec(
            name="temperature", axes=("batch",), element="fp32", values=Between(low=2.0**-10, high=64.0, by="ratio")
        ),
        TensorSpec(name="top_k", axes=("batch",), element="int32", values=Counts(axis="vocab_size")),
        TensorSpec(name="top_p", axes=("batch",), element="fp32", values=Between(low=0.0, high=1.4)),
        TensorSpec(name="u", axes=("batch",), element="fp32", values=Chance()),
    ),
    scalars={},
    outputs=(TensorSpec(name="token", axes=("batch",), element="int32"),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="sampling(logits, temperature, top_k, top_p, u) -> token",
    reference=sampling,
    oracle=oracle,
    numerics=(
        "Let a token's place reach from the sum of the weights before it to that sum with its own weight. The token "
        "is right if u times the sum of all weights lies in its place, as far as a kernel can know. A weight errs by"
        " 2 u_acc (|l| + |max|) / temperature, relative to itself. A running sum errs by 4 u_acc (sqrt(n) + 8) of "
        "the whole, with n = vocab_size. e is the sum of both errors, and 2 e is allowed. Some tokens may be kept or"
        " dropped, and twice the probability of all of them is allowed as well. One kind has a probability before it"
        " that is within e of top_p. The other has a logit l within u_acc (2 |l| + 4 temperature) below the last "
        "that a filter keeps. There, a kernel may have ranked probabilities in the place of logits. A token that may"
        " not be kept is never right. Many draws from one row are also counted against the distribution in fp64, by "
        "a G-test. NaN and infinities are left open."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "vocab_size": 128256},
        {"batch": 16, "vocab_size": 32000},
        {"batch": 64, "vocab_size": 151936},
        {"batch": 100, "vocab_size": 1001},
    ),
    row_axis="batch",
    reduced_axis="vocab_size",
    specials="unspecified",
    masks=True,
    mutants=MUTANTS,
    variants=VARIANTS,
)
