"""The gate of DeepSeek-V3's mixture of experts: sigmoid scores, eight experts by corrected score, renormalised.

Source of the definition: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), equations 13 to 16. With s =
sigmoid(logit), the eight experts with the largest s + bias are chosen. Their weights are s over the sum of the chosen
s, times the routed scaling factor (2.5), with the 1e-20 of the published model code. All experts are in one group, as
Kimi-K2's 384 are; a choice limited to groups is another operation. The operands don't show the number of chosen
experts, so it is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, AsKind, DType, TensorSpec
from forge.operations.operation import Expectation, Expected, Operation, Ranked

if TYPE_CHECKING:
    import torch

CHOSEN = 8
"""Number of experts chosen for each token."""
NEVER_ZERO = 1e-20
"""Number added to the sum of the chosen scores, so that it isn't 0, as in the published model code."""
BESIDE_THE_SUM = 8.0
"""Constant added to sqrt(n) in the error bound, for the steps besides the sum, as in docs/numerics.md."""
SUBNORMAL = 2.0**-126
"""Smallest normal fp32 number. A kernel may treat smaller ones as zero."""


def moe_fused_gate(logits: torch.Tensor, bias: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [tokens, experts], bias [experts] fp32 -> weights [tokens, 8] fp32, indices [tokens, 8] int32.

    Ordered by sigmoid(logits) + bias, largest first.
    """
    import torch

    scores = torch.sigmoid(logits.float())
    indices = (scores + bias).topk(min(8, logits.shape[-1]), -1).indices
    chosen = scores.gather(-1, indices)
    return chosen / (chosen.sum(-1, keepdim=True) + 1e-20) * scale, indices.to(torch.int32)


# Compute weights [tokens, 8] in fp64 and the ranked experts, from logits [tokens, experts] and bias [experts].
# The error scale of the weights [tokens, 8] allows either weight where the bound can't tell two ranks apart.
def oracle(logits: torch.Tensor, bias: torch.Tensor, scale: float) -> tuple[Expected, ...]:
    """The same in fp64; where two ranks can't be told apart, either's weight will do."""
    h = logits.double()
    scores, below = h.sigmoid(), (-h).clamp(min=0.0)
    corrected = scores + bias.double()
    count = min(CHOSEN, h.shape[-1])
    uncertainty = UNIT_ROUNDOFF["fp32"] * (8 * scores * (1 + below / 4) + 2 * corrected.abs()) + SUBNORMAL
    ranked = Ranked(values=corrected, uncertainty=uncertainty, count=count)
    order = ranked.value
    chosen = scores.gather(-1, order)
    total = chosen.sum(-1, keepdim=True) + NEVER_ZERO
    weights = chosen / total * scale
    per_unit = UNIT_ROUNDOFF["fp32"] * (count**0.5 + BESIDE_THE_SUM)
    size = weights * (1 + below.gather(-1, order).amax(-1, keepdim=True) / 4) + SUBNORMAL / total * scale / per_unit
    size = size + _undecided(corrected, uncertainty, scores, count) / total * scale / per_unit
    return Expectation(value=weights, scale=size, terms=count), ranked


def _undecided(corrected: torch.Tensor, uncertainty: torch.Tensor, scores: torch.Tensor, count: int) -> torch.Tensor:
    """Return how far a chosen score may differ, because neighbouring ranks are too close to order.

    Ranks that are each too close to the next one form a group, in which any score may have any rank. The group of the
    last chosen rank may have more ranks, whose scores may then be in the sum that all weights are divided by.
    """
    import torch

    order = corrected.argsort(-1, descending=True)
    ranks, doubt, ranked_scores = (one.gather(-1, order) for one in (corrected, uncertainty, scores))
    apart = ranks[:, :-1] - ranks[:, 1:] > doubt[:, :-1] + doubt[:, 1:]
    group = torch.nn.functional.pad(apart.long().cumsum(-1), (1, 0))[:, : ranks.shape[-1]]
    least, most = (
        torch.zeros_like(ranks).scatter_reduce(-1, group, ranked_scores, how, include_self=False).gather(-1, group)
        for how in ("amin", "amax")
    )
    span = (most - least)[:, :count]
    of_the_last = group[:, :count] == group[:, count - 1 : count]
    open_ended = (group == group[:, count - 1 : count]).sum(-1, keepdim=True) > of_the_last.sum(-1, keepdim=True)
    return span + torch.where(open_ended & of_the_last, span, 0.0).sum(-1, keepdim=True)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    tokens, experts = shape["tokens"], shape["experts"]
    return tokens * experts * ITEMSIZE_BYTES[dtype] + experts * 4 + tokens * min(CHOSEN, experts) * (4 + 4)


def _flops(shape: Mapping[str, int]) -> int:
    return 5 * shape["tokens"] * shape["experts"]


Pair = tuple["torch.Tensor", "torch.Tensor"]
Gate = Callable[["torch.Tensor", "torch.Tensor", float], Pair]


def _gate(
    scores: Callable[[torch.Tensor], torch.Tensor] = lambda h: h.sigmoid(),
    rank: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda s, b: s + b,
    weigh: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda s, _: s,
    total: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda chosen, _: chosen.sum(-1, keepdim=True),
) -> Gate:
    """Return the gate with one step replaced."""

    def function(logits: torch.Tensor, bias: torch.Tensor, scale: float) -> Pair:
        import torch

        own = scores(logits.float())
        indices = rank(own, bias).topk(min(CHOSEN, logits.shape[-1]), -1).indices
        chosen = weigh(own, bias.expand_as(own)).gather(-1, indices)
        return chosen / (total(chosen, own) + NEVER_ZERO) * scale, indices.to(torch.int32)

    return function


def _changed(change: Callable[[torch.Tensor, torch.Tensor], Pair]) -> Gate:
    """Return an operation that applies `change` to a right answer."""
    return lambda logits, bias, scale: change(*moe_fused_gate(logits, bias, scale))


MUTANTS = {
    "softmax for sigmoid": _gate(lambda h: h.softmax(-1)),
    "bias ignored": _gate(rank=lambda s, _: s),
    "bias subtracted": _gate(rank=lambda s, b: s - b),
    "the next expert's bias": _gate(rank=lambda s, b: s + b.roll(1)),
    "one bias for all": _gate(rank=lambda s, b: s + b[:1]),
    "bias before the sigmoid": _gate(rank=lambda s, b: (s.logit() + b).nan_to_num()),
    "bias left in the weights": _gate(weigh=lambda s, b: s + b),
    "chosen by the smallest": _gate(rank=lambda s, b: -s - b),
    "ranked by halves of a hundredth": _gate(rank=lambda s, b: ((s + b) * 200).round()),
    "not renormalised": _gate(total=lambda chosen, _: chosen.new_ones(chosen.shape[0], 1)),
    "divided by the sum of all": _gate(total=lambda _, s: s.sum(-1, keepdim=True)),
    "divided by the sum of seven": _gate(total=lambda chosen, _: chosen[:, :-1].sum(-1, keepdim=True)),
    "divided by the largest": _gate(total=lambda chosen, _: chosen.amax(-1, keepdim=True)),
    "scale left out": lambda logits, bias, _: moe_fused_gate(logits, bias, 1.0),
    "scale fixed at 2.5": lambda logits, bias, _: moe_fused_gate(logits, bias, 2.5),
    "weights smallest first": _changed(lambda weights, indices: (weights.flip(-1), indices)),
    "indices smallest first": _changed(lambda weights, indices: (weights, indices.flip(-1))),
    "indices from one": _changed(lambda weights, indices: (weights, indices + 1)),
    "ordered by weight": _changed(lambda weights, indices: (weights.sort(dim=-1, descending=True).values, indices)),
    "one expert twice": _changed(lambda weights, indices: (weights, indices[:, :1].expand_as(indices))),
}


def _by_sorting(logits: torch.Tensor, bias: torch.Tensor, scale: float) -> Pair:
    """Write the exponential out, sort all experts, and multiply weights by a reciprocal."""
    import torch

    scores = 1 / (1 + (-logits.float()).exp())
    indices = (scores + bias).sort(dim=-1, descending=True).indices[:, :CHOSEN]
    chosen = scores.gather(-1, indices)
    return chosen * (scale / (chosen.sum(-1, keepdim=True) + NEVER_ZERO)), indices.to(torch.int32)


def _in_double(logits: torch.Tensor, bias: torch.Tensor, scale: float) -> Pair:
    """Rank in fp64, and take the last of equal experts."""
    import torch

    scores = logits.double().sigmoid()
    last = logits.shape[-1] - 1
    indices = last - (scores + bias).flip(-1).topk(min(CHOSEN, last + 1), -1).indices
    chosen = scores.gather(-1, indices)
    return (chosen / (chosen.sum(-1, keepdim=True) + NEVER_ZERO) * scale).float(), indices.to(torch.int32)


VARIANTS = {"by sorting, times a reciprocal": _by_sorting, "in fp64, the last of equal ones": _in_double}


MOE_FUSED_GATE = Operation(
    name="moe_fused_gate",
    summary="sigmoid gate with bias-corrected choice of eight experts and renormalised weights",
    axes=("tokens", "experts"),
    inputs=(
        TensorSpec(name="logits", axes=("tokens", "experts")),
        TensorSpec(name="bias", axes=("experts",), element="fp32", values=AsKind(exponent=-3)),
    ),
    scalars={"scale": 2.5},
    outputs=(
        TensorSpec(name="weights", axes=("tokens", "experts"), element="fp32", at_most={"experts": CHOSEN}),
        TensorSpec(name="indices", axes=("tokens", "experts"), element="int32", at_most={"experts": CHOSEN}),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="moe_fused_gate(logits, bias, scale) -> (weights, indices)",
    reference=moe_fused_gate,
    oracle=oracle,
    numerics=(
        "A score s = 1 / (1 + exp(-l)) errs by a few u_acc and, from the exponential, by u_acc max(0, -l), "
        "relative to itself. So does the sum of the n = 8 chosen, all positive, and a weight is the quotient. "
        "So S = weight (1 + max(0, -l) / 4), with the largest -l of the chosen. A score below 2^-126 may be "
        "zero. An index is right if the corrected score that stands there is its rank's, as far as two can be "
        "told apart. No index comes twice. Where two neighbouring ranks are too near for that, S has room for "
        "either's weight. Where those are the last chosen and the first left out, S has room for either's "
        "score in the sum. NaN and infinities are left open: what has no order has no choice, and the weights "
        "depend on it."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 1, "experts": 256},
        {"tokens": 16, "experts": 256},
        {"tokens": 64, "experts": 384},
        {"tokens": 100, "experts": 160},
        {"tokens": 4096, "experts": 256},
    ),
    row_axis="tokens",
    reduced_axis="experts",
    specials="unspecified",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={}, scalars={"scale": 1}, outputs={"weights": 1, "indices": 0}),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
)
