"""Merges the attention over two sets of keys into the attention over both: split caches, shared prefixes, chunks.

Each part has its result and the logarithm of its sum of exponentials (lse), as flash attention returns them. Source
of the definition: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference" (2023). FlashInfer names
it merge_state and vLLM merge_attn_states; both take natural logarithms here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, LogSums, TensorSpec
from forge.operations.operation import Expectation, Operation

if TYPE_CHECKING:
    import torch

LSE_BYTES = 4
"""Size of a logarithm in bytes: fp32, whatever the type of the results."""


def merge_attention(
    a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """A, b [tokens, heads, head_dim] with a_lse, b_lse [tokens, heads] -> y like a, lse like a_lse, in fp32."""
    import torch

    lse = torch.logaddexp(a_lse, b_lse)
    largest = torch.maximum(a_lse, b_lse)
    a_weight, b_weight = (a_lse - largest).exp(), (b_lse - largest).exp()
    total = a_weight + b_weight
    y = a.float() * (a_weight / total).unsqueeze(-1) + b.float() * (b_weight / total).unsqueeze(-1)
    return y.to(a.dtype), lse


# Compute y [tokens, heads, head_dim] and lse [tokens, heads] in fp64, from two parts of such shapes.
# y's error scale bounds what errors of the weights do to the sum of both parts. lse's error scale is 1 + the larger
# |lse| of the parts.
def oracle(
    a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor
) -> tuple[Expectation, Expectation]:
    """The same in fp64."""
    import torch

    first, second = a_lse.double(), b_lse.double()
    lse = torch.logaddexp(first, second)
    largest = torch.maximum(first, second).abs()
    apart = (first - second).abs().nan_to_num(posinf=0.0).unsqueeze(-1)  # the weight of an empty part is exactly 0
    a_weight, b_weight = ((one - lse).exp().unsqueeze(-1) for one in (first, second))
    h, k = a.double(), b.double()
    sizes = h.abs() * a_weight + k.abs() * b_weight
    moved = a_weight * b_weight * apart * (h.abs() + k.abs())
    size = sizes * (1 + largest.unsqueeze(-1) / 4) + moved / 4
    y = Expectation(value=h * a_weight + k * b_weight, scale=size, terms=2, last_factor=h.abs() + k.abs())
    return y, Expectation(value=lse, scale=largest + 1, terms=2)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return 3 * shape["tokens"] * shape["heads"] * (shape["head_dim"] * ITEMSIZE_BYTES[dtype] + LSE_BYTES)


def _flops(shape: Mapping[str, int]) -> int:
    return 3 * shape["tokens"] * shape["heads"] * (shape["head_dim"] + 3)


Pair = tuple["torch.Tensor", "torch.Tensor"]
Weigh = Callable[["torch.Tensor", "torch.Tensor"], Pair]


def _weights(first: torch.Tensor, second: torch.Tensor) -> Pair:
    """Return the shares of both parts."""
    import torch

    largest = torch.maximum(first, second)
    a_weight, b_weight = (first - largest).exp(), (second - largest).exp()
    return a_weight / (a_weight + b_weight), b_weight / (a_weight + b_weight)


def _merged(weigh: Weigh = _weights, lse: Callable[..., torch.Tensor] | None = None) -> Callable[..., Pair]:
    """Return an operation in fp32 with other weights or another logarithm."""

    def function(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor) -> Pair:
        import torch

        a_weight, b_weight = weigh(a_lse, b_lse)
        y = a.float() * a_weight.unsqueeze(-1) + b.float() * b_weight.unsqueeze(-1)
        return y.to(a.dtype), (lse or torch.logaddexp)(a_lse, b_lse)

    return function


def _larger_alone(first: torch.Tensor, second: torch.Tensor) -> Pair:
    return (first >= second).float(), (first < second).float()


def _in_base_two(first: torch.Tensor, second: torch.Tensor) -> Pair:
    import torch

    largest = torch.maximum(first, second)
    a_weight, b_weight = (first - largest).exp2(), (second - largest).exp2()
    return a_weight / (a_weight + b_weight), b_weight / (a_weight + b_weight)


def _not_normalised(first: torch.Tensor, second: torch.Tensor) -> Pair:
    import torch

    largest = torch.maximum(first, second)
    return (first - largest).exp(), (second - largest).exp()


def _rounded(weigh: Weigh) -> Weigh:
    def rounded(first: torch.Tensor, second: torch.Tensor) -> Pair:
        a_weight, b_weight = weigh(first, second)
        return a_weight.bfloat16().float(), b_weight.bfloat16().float()

    return rounded


def _empty_as_zero(first: torch.Tensor, second: torch.Tensor) -> Pair:
    import torch

    return _weights(*(torch.where(one.isinf(), 0.0, one) for one in (first, second)))


MUTANTS = {
    "both parts alike": _merged(lambda first, second: (first * 0 + 0.5, second * 0 + 0.5)),
    "weights exchanged": _merged(lambda first, second: _weights(second, first)),
    "the larger part alone": _merged(_larger_alone),
    "the first part alone": _merged(lambda first, second: (first * 0 + 1, second * 0)),
    "powers of two": _merged(_in_base_two),
    "not normalised": _merged(_not_normalised),
    "empty if the first part is": _merged(
        lse=lambda first, second: first.where(first.isinf(), first.logaddexp(second))
    ),
    "an empty part weighs as a logarithm of zero": _merged(_empty_as_zero),
    "logarithms for weights": _merged(lambda first, second: (first / (first + second), second / (first + second))),
    "one head's weights for all": _merged(lambda first, second: _weights(first[:, :1], second[:, :1])),
    "one token's weights for all": _merged(lambda first, second: _weights(first[:1], second[:1])),
    "the first part's weight for both": _merged(lambda first, second: (_weights(first, second)[0],) * 2),
    "weights in bf16": _merged(_rounded(_weights)),
    "the larger logarithm": _merged(lse=lambda first, second: first.maximum(second)),
    "logarithms added": _merged(lse=lambda first, second: first + second),
    "the logarithm of the sum alone": _merged(
        lse=lambda first, second: first.logaddexp(second) - first.maximum(second)
    ),
    "the mean of the logarithms": _merged(lse=lambda first, second: first.logaddexp(second) - 0.6931472),
    "the first logarithm": _merged(lse=lambda first, _: first.clone()),
    "parts exchanged": lambda a, a_lse, b, b_lse: merge_attention(b, a_lse, a, b_lse),
}


def _from_the_whole(first: torch.Tensor, second: torch.Tensor) -> Pair:
    """Take exponentials of what is below the merged logarithm, as flash attention's backward pass does."""
    lse = first.logaddexp(second)
    return (first - lse).exp(), (second - lse).exp()


def _by_reciprocal(first: torch.Tensor, second: torch.Tensor) -> Pair:
    a_weight, b_weight = _not_normalised(first, second)
    share = (a_weight + b_weight).reciprocal()
    return a_weight * share, b_weight * share


def _larger_and_log1p(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return first.maximum(second) + (-(first - second).abs()).exp().log1p()


VARIANTS = {
    "below the merged logarithm": _merged(_from_the_whole),
    "times the reciprocal of the sum": _merged(_by_reciprocal, _larger_and_log1p),
    "by the logistic function": _merged(
        lambda first, second: ((first - second).sigmoid(), (second - first).sigmoid()), _larger_and_log1p
    ),
}


MERGE_ATTENTION = Operation(
    name="merge_attention",
    summary="attention over two sets of keys, merged from the results and logarithms of both",
    axes=("tokens", "heads", "head_dim"),
    inputs=(
        TensorSpec(name="a", axes=("tokens", "heads", "head_dim")),
        TensorSpec(name="a_lse", axes=("tokens", "heads"), element="fp32", values=LogSums(empty="even")),
        TensorSpec(name="b", axes=("tokens", "heads", "head_dim")),
        TensorSpec(name="b_lse", axes=("tokens", "heads"), element="fp32", values=LogSums(empty="odd")),
    ),
    scalars={},
    outputs=(
        TensorSpec(name="y", axes=("tokens", "heads", "head_dim")),
        TensorSpec(name="lse", axes=("tokens", "heads"), element="fp32"),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="merge_attention(a, a_lse, b, b_lse) -> (y, lse)",
    reference=merge_attention,
    oracle=oracle,
    numerics=(
        "Let m be the larger logarithm, d the distance of both, p and q the parts' shares. An exponential errs by "
        "2 u_acc d relative to itself, from the rounding of d and of its product with log2 e. That moves y by p q "
        "d (|a| + |b|). A kernel may also take exponentials of what is below the merged logarithm, or scale "
        "logarithms before it subtracts them; both err by u_acc m. So S = (p |a| + q |b|) (1 + |m| / 4) + p q d "
        "(|a| + |b|) / 4, with n = 2. A share below the smallest number may be zero. An empty part has minus "
        "infinity as its logarithm and the share 0: y is the other part, with its logarithm. y is rounded once: one "
        "u_out. The merged logarithm is m + log(1 + exp(-d)), in fp32: S = |m| + 1, rounded once. NaN and "
        "other infinities are left open: two parts that are both empty have no merged result."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 1, "heads": 32, "head_dim": 128},
        {"tokens": 16, "heads": 32, "head_dim": 128},
        {"tokens": 64, "heads": 28, "head_dim": 128},
        {"tokens": 100, "heads": 16, "head_dim": 96},
        {"tokens": 2048, "heads": 8, "head_dim": 64},
        {"tokens": 4096, "heads": 32, "head_dim": 128},
    ),
    row_axis="tokens",
    reduced_axis="head_dim",
    free_axes=("heads",),
    guide="attention_decode",
    specials="unspecified",
    relations=(RowsIndependent(), RowsPermuted(), Scaled(inputs={"a": 1, "b": 1}, outputs={"y": 1, "lse": 0})),
    mutants=MUTANTS,
    variants=VARIANTS,
)
