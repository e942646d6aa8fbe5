"""Cross-entropy of each token's logits and its label: log sum exp(logits) - logits[label].

It is torch.nn.functional.cross_entropy(reduction="none"), in fp32 for every type of logits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.tensors import ITEMSIZE_BYTES, DType, Indices, TensorSpec
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Logits [tokens, vocab_size], labels [tokens] in int64 -> loss [tokens] in fp32."""
    h = logits.float()
    h = h - h.amax(-1, keepdim=True)
    return h.exp().sum(-1).log() - h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def vendor(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Compute the loss [tokens] with torch.nn.functional.cross_entropy, in fp32."""
    import torch

    return torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")


# Compute the loss [tokens] in fp64, from logits [tokens, vocab_size] and labels [tokens].
# The error scale [tokens] is the sum of the magnitudes that are added: 1, the logarithm, the largest and the label's
# logit.
def oracle(logits: torch.Tensor, labels: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    h = logits.double()
    largest = h.amax(-1)
    chosen = h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    terms = (h - largest.unsqueeze(-1)).exp()
    logarithm, lost = terms.sum(-1).log(), drift_share(terms).squeeze(-1)
    size = 1 + logarithm + largest.abs() + chosen.abs()
    value = logarithm + (largest - chosen)
    return (Expectation(value=value, scale=size, terms=logits.shape[-1], drift=lost),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return shape["tokens"] * (shape["vocab_size"] * ITEMSIZE_BYTES[dtype] + 8 + 4)


def _flops(shape: Mapping[str, int]) -> int:
    return 4 * shape["tokens"] * shape["vocab_size"]


Loss = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def _mutant(change: Loss) -> Loss:
    """Return an operation with a wrong formula in fp32; labels are [tokens, 1]."""
    return lambda logits, labels: change(logits.float(), labels.unsqueeze(-1)).squeeze(-1)


def _log_of_sum(h: torch.Tensor) -> torch.Tensor:
    return h.logsumexp(-1, keepdim=True)


def _smoothed(h: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """A tenth of every class's loss."""
    return _log_of_sum(h) - 0.9 * h.gather(-1, labels) - 0.1 * h.mean(-1, keepdim=True)


MUTANTS = {
    "the next label": _mutant(lambda h, at: _log_of_sum(h) - h.gather(-1, (at + 1) % h.shape[-1])),
    "labels of another token": _mutant(lambda h, at: _log_of_sum(h) - h.gather(-1, at.roll(1, 0))),
    "labels cut to 6 bits": _mutant(lambda h, at: _log_of_sum(h) - h.gather(-1, at % 64)),
    "maximum not subtracted": _mutant(lambda h, at: h.exp().sum(-1, keepdim=True).log() - h.gather(-1, at)),
    "maximum for the sum": _mutant(lambda h, at: h.amax(-1, keepdim=True) - h.gather(-1, at)),
    "logarithm to base two": _mutant(
        lambda h, at: h.softmax(-1).gather(-1, at).log2().neg(),
    ),
    "probability clipped at 1e-6": _mutant(lambda h, at: h.softmax(-1).gather(-1, at).clamp(min=1e-6).log().neg()),
    "last column not summed": _mutant(lambda h, at: _log_of_sum(h[:, : max(1, h.shape[-1] - 1)]) - h.gather(-1, at)),
    "mean over the tokens": _mutant(
        lambda h, at: (_log_of_sum(h) - h.gather(-1, at)).mean(0, keepdim=True).expand(h.shape[0], 1).contiguous()
    ),
    "labels smoothed": _mutant(_smoothed),
    "summed in the logits' type": lambda logits, labels: (
        _log_of_sum(logits.bfloat16()).float() - logits.float().gather(-1, labels.unsqueeze(-1))
    ).squeeze(-1),
}


def _in_blocks(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Use blocks of 64 columns, and rescale the sum so far whenever the maximum grows."""
    import torch

    h = logits.float()
    largest, total = torch.full_like(h[:, 0], float("-inf")), torch.zeros_like(h[:, 0])
    for block in h.split(64, -1):
        larger = torch.maximum(largest, block.amax(-1))
        known = torch.where(larger == float("-inf"), torch.zeros_like(larger), larger)
        total = total * (largest - known).exp() + (block - known.unsqueeze(-1)).exp().sum(-1)
        largest = larger
    loss = largest + total.log() - h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return torch.where(largest.isinf(), torch.full_like(loss, float("nan")), loss)


def _log_softmax(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    import torch

    return -torch.log_softmax(logits.float(), -1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)


VARIANTS = {"summed in blocks": _in_blocks, "from the logarithm of the softmax": _log_softmax}


CROSS_ENTROPY = Operation(
    name="cross_entropy",
    summary="cross-entropy of logits and labels, one loss for each token",
    axes=("tokens", "vocab_size"),
    inputs=(
        TensorSpec(name="logits", axes=("tokens", "vocab_size")),
        TensorSpec(
            name="labels", axes=("tokens",), element="int64", values=Indices(axis="vocab_size", extremes_of="logits")
        ),
    ),
    scalars={},
    outputs=(TensorSpec(name="loss", axes=("tokens",), element="fp32"),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="cross_entropy(logits, labels) -> loss",
    reference=cross_entropy,
    oracle=oracle,
    numerics=(
        "The sum of n = vocab_size positive exponentials errs by about u_acc (sqrt(n) + 8) relative to "
        "itself. Its logarithm errs by that much, absolutely: 1 is in S. The loss is this logarithm, plus the "
        "row's maximum, minus the label's logit, in any order, each of which is rounded. So S = 1 + log sum "
        "exp(logits - maximum) + |maximum| + |logits[label]|. The result is rounded to fp32 once. Nothing is "
        "rounded to the logits' type on the way."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 1, "vocab_size": 128256},
        {"tokens": 16, "vocab_size": 128256},
        {"tokens": 64, "vocab_size": 151936},
        {"tokens": 1024, "vocab_size": 32000},
    ),
    row_axis="tokens",
    reduced_axis="vocab_size",
    specials="as_reference",
    masks=True,
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
