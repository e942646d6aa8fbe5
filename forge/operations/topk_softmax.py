"""The gate of a mixture of experts: softmax over a token's logits, and the eight largest weights with their experts.

It is vLLM's topk_softmax without renormalisation. A token has eight experts, as in DeepSeek-V3 (of 256),
Qwen3-30B-A3B (of 128) and OLMoE (of 64), or all if there are fewer. The operands don't show this number, so it is
fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, TensorSpec
from forge.operations.operation import Expectation, Expected, Operation, Ranked
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch

CHOSEN = 8
"""Number of experts chosen for each token."""
BESIDE_THE_SUM = 8.0
"""Constant added to sqrt(n) in the error bound, for the steps besides the sum, as in docs/numerics.md."""


def topk_softmax(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [tokens, experts] -> weights [tokens, 8] in fp32, indices [tokens, 8] in int32, largest first."""
    import torch

    probabilities = torch.softmax(logits.float(), -1)
    weights, indices = probabilities.topk(min(8, logits.shape[-1]), -1)
    return weights, indices.to(torch.int32)


# Compute weights [tokens, 8] in fp64 and the ranked experts, from logits [tokens, experts].
# The error scale is the weight times 1 + d / 4, where d is how far its logit lies below the row's largest.
def oracle(logits: torch.Tensor) -> tuple[Expected, ...]:
    """The same in fp64."""
    import torch

    h = logits.double()
    below = h - h.amax(-1, keepdim=True)
    experts, probabilities = logits.shape[-1], torch.softmax(h, -1)
    size = probabilities * (1 + below.abs().nan_to_num(posinf=0.0) / 4)
    growth = 1 + 2 * (experts**0.5 + BESIDE_THE_SUM)
    uncertainty = UNIT_ROUNDOFF["fp32"] * growth * size + 2.0**-126
    ranked = Ranked(values=probabilities, uncertainty=uncertainty, count=min(CHOSEN, experts))
    weights, sizes = (values.gather(-1, ranked.value) for values in (probabilities, size))
    lost = drift_share(probabilities).expand_as(weights)
    return Expectation(value=weights, scale=sizes, terms=experts, drift=lost), ranked


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    tokens, experts = shape["tokens"], shape["experts"]
    return tokens * experts * ITEMSIZE_BYTES[dtype] + tokens * min(CHOSEN, experts) * (4 + 4)


def _flops(shape: Mapping[str, int]) -> int:
    return 4 * shape["tokens"] * shape["experts"]


Pair = tuple["torch.Tensor", "torch.Tensor"]


def _chosen(scores: Callable[[torch.Tensor], torch.Tensor], *, largest: bool = True) -> Callable[..., Pair]:
    """Return an operation that takes the eight largest of other scores."""

    def function(logits: torch.Tensor) -> Pair:
        import torch

        weights, indices = scores(logits.float()).topk(min(CHOSEN, logits.shape[-1]), -1, largest=largest)
        return weights, indices.to(torch.int32)

    return function


def _renormalised(logits: torch.Tensor) -> Pair:
    weights, indices = topk_softmax(logits)
    return weights / weights.sum(-1, keepdim=True), indices


def _one_twice(logits: torch.Tensor) -> Pair:
    """Give the second position to the first position's expert."""
    weights, indices = topk_softmax(logits)
    indices[:, 1:2] = indices[:, :1]
    return weights, indices


def _bf16_ranked(logits: torch.Tensor) -> Pair:
    """Rank experts by weights in bf16, whose ties hide which logit is larger."""
    import torch

    probabilities = torch.softmax(logits.float(), -1)
    order = probabilities.bfloat16().float().topk(min(CHOSEN, logits.shape[-1]), -1).indices
    return probabilities.gather(-1, order), order.to(torch.int32)


MUTANTS = {
    "the smallest": _chosen(lambda h: h.softmax(-1), largest=False),
    "logits for weights": _chosen(lambda h: h),
    "sigmoid for softmax": _chosen(lambda h: h.sigmoid()),
    "by magnitude": _chosen(lambda h: h.abs().softmax(-1)),
    "maximum not subtracted": _chosen(lambda h: h.exp() / h.exp().sum(-1, keepdim=True)),
    "softmax over the tokens": _chosen(lambda h: h.softmax(0)),
    "the sum of the first half": _chosen(lambda h: h.softmax(-1) / h[:, : (h.shape[1] + 1) // 2].softmax(-1).sum()),
    "weights renormalised": _renormalised,
    "one expert twice": _one_twice,
    "ranked in bf16": _bf16_ranked,
    "indices from one": lambda logits: (topk_softmax(logits)[0], topk_softmax(logits)[1] + 1),
    "smallest first": lambda logits: tuple(one.flip(-1) for one in topk_softmax(logits)),
    "indices smallest first": lambda logits: (topk_softmax(logits)[0], topk_softmax(logits)[1].flip(-1)),
}


def _ranked_by_logits(logits: torch.Tensor) -> Pair:
    """Choose experts by logits, the last of equal ones; compute weights from the sum of exponentials."""
    import torch

    h = logits.float()
    order = h.shape[-1] - 1 - h.flip(-1).topk(min(CHOSEN, h.shape[-1]), -1).indices
    exponents = (h - h.amax(-1, keepdim=True)).exp()
    return exponents.gather(-1, order) / exponents.sum(-1, keepdim=True), order.to(torch.int32)


def _through_the_logarithm(logits: torch.Tensor) -> Pair:
    import torch

    weights, indices = torch.log_softmax(logits.float(), -1).topk(min(CHOSEN, logits.shape[-1]), -1)
    return weights.exp(), indices.to(torch.int32)


VARIANTS = {"ranked by logits": _ranked_by_logits, "through the logarithm": _through_the_logarithm}


TOPK_SOFTMAX = Operation(
    name="topk_softmax",
    summary="softmax over experts and the eight largest weights of each token, with their experts",
    axes=("tokens", "experts"),
    inputs=(TensorSpec(name="logits", axes=("tokens", "experts")),),
    scalars={},
    outputs=(
        TensorSpec(name="weights", axes=("tokens", "experts"), element="fp32", at_most={"experts": CHOSEN}),
        TensorSpec(name="indices", axes=("tokens", "experts"), element="int32", at_most={"experts": CHOSEN}),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="topk_softmax(logits) -> (weights, indices)",
    reference=topk_softmax,
    oracle=oracle,
    numerics=(
        "Let d = logit - the row's maximum. A weight is exp(d) over a sum of n = experts positive terms, "
        "which errs by about u_acc (sqrt(n) + 8) relative to itself. The exponential errs by about 2.5 u_acc "
        "|d|, from the rounding of d and of its product with log2 e. So S = weight (1 + |d| / 4). A weight "
        "below 2^-126 may be zero. An index is right if the weight that stands there is its rank's, as far as "
        "two weights with such errors can be told apart. Kernels may rank logits or weights, and choose among "
        "equal ones as they like. No index comes twice."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 1, "experts": 256},
        {"tokens": 16, "experts": 128},
        {"tokens": 64, "experts": 256},
        {"tokens": 4096, "experts": 128},
    ),
    row_axis="tokens",
    reduced_axis="experts",
    specials="nan_may_spread",
    masks=True,
    mutants=MUTANTS,
    variants=VARIANTS,
)
