"""Attention of one new query per sequence over its keys and values: decoding with grouped heads, dense cache.

Source of the definition: Vaswani et al., "Attention Is All You Need" (2017), equation 1, scores times 1 / sqrt(d).
Heads share keys and values in groups: Ainslie et al., "GQA" (2023). q [tokens, kv_heads, group, d] is [tokens, heads,
d] in memory; head h belongs to kv head h // group. Every sequence has kv_len positions, and each query sees all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, TensorSpec
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch

BESIDE_THE_SUM = 8.0
"""Constant added to sqrt(n) in the error bound, for the steps besides the sum, as in docs/numerics.md."""
BLOCK = 48
"""Number of terms that a variant adds in one block. It divides no usual size, so the last block is partial."""


def attention_decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Q [tokens, kv_heads, group, d], k, v [tokens, kv_len, kv_heads, d] -> y like q, computed in fp32."""
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype)


# Compute y like q [tokens, kv_heads, group, d] in fp64, from k and v [tokens, kv_len, kv_heads, d].
# The error scale, shaped like y, bounds what errors of the scores and of the weights do to the sum over the values.
def oracle(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    import torch

    scale, terms = q.shape[-1] ** -0.5, max(q.shape[-1], k.shape[1])
    query = q.double()
    # dense, so that no product copies them again
    keys, values = k.double().permute(0, 2, 3, 1).contiguous(), v.double().permute(0, 2, 1, 3).contiguous()
    scores = (query @ keys) * scale
    p = scores.softmax(-1)
    y = p @ values
    summed = (query.abs() @ keys.abs()) * scale
    doubted = p * (summed + (scores.amax(-1, keepdim=True) - scores) / 4)
    unit = UNIT_ROUNDOFF["fp32"] * (math.sqrt(terms) + BESIDE_THE_SUM)
    sizes, squares = values.abs(), values.square()
    size = (p + doubted) @ sizes + doubted.sum(-1, keepdim=True) * y.abs()
    coarse = torch.finfo(q.dtype).eps / unit * (p.square() @ squares).sqrt()
    far = (unit * summed.amax(-1, keepdim=True)).square().clamp(max=1.0) * (2 / unit) * sizes.amax(-2, keepdim=True)
    together = squares.sum(-2, keepdim=True).sqrt().expand_as(y)
    size, lost = size + coarse + far, drift_share(p).expand_as(y)
    return (Expectation(value=y, scale=size, terms=terms, last_factor=together, drift=2 * lost),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    tokens, length, width = shape["tokens"], shape["kv_len"], shape["kv_heads"] * shape["head_dim"]
    return 2 * tokens * width * (shape["group"] + length) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 4 * math.prod(shape.values())


Attention = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]
Change = Callable[["torch.Tensor"], "torch.Tensor"]


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    return scores.softmax(-1)


def _attends(
    weigh: Change = _softmax, queries: Change = _same, keys: Change = _same, values: Change = _same
) -> Attention:
    """Return attention in fp32 with one step replaced; operands are [tokens, kv_heads, group or kv_len, d]."""

    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        h = queries(q.float())
        k_by_head, v_by_head = keys(k.float().transpose(1, 2)), values(v.float().transpose(1, 2))
        scores = (h @ k_by_head.transpose(2, 3)) * q.shape[-1] ** -0.5
        return (weigh(scores) @ v_by_head).to(q.dtype)

    return function


def _seen(count: Callable[[int], int]) -> Change:
    """Return a step that sees only the first `count(kv_len)` positions."""

    def weigh(scores: torch.Tensor) -> torch.Tensor:
        kept = scores.clone()
        kept[..., count(scores.shape[-1]) :] = -math.inf
        return kept.softmax(-1)

    return weigh


MUTANTS = {
    "scores not scaled": _attends(queries=lambda h: h * h.shape[-1] ** 0.5 if h.shape[-1] > 1 else h * 2),
    "scaled by twice as much": _attends(lambda scores: (scores * 2).softmax(-1)),
    "half of the scale": _attends(lambda scores: (scores / 2).softmax(-1)),
    "the last position not seen": _attends(_seen(lambda length: length - 1)),
    "the second half not seen": _attends(_seen(lambda length: length // 2)),
    "the rest beyond blocks of 64 not seen": _attends(_seen(lambda length: length // 64 * 64)),
    "all positions alike": _attends(lambda scores: scores.mul(0.0).softmax(-1)),
    "the largest score alone": _attends(lambda scores: (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)),
    "powers of two": _attends(lambda scores: (scores * math.log(2)).softmax(-1)),
    "softmax over the group": _attends(lambda scores: scores.softmax(-2)),
    "not normalised": _attends(lambda scores: (scores - scores.amax(-1, keepdim=True)).exp()),
    "the largest probability lost": _attends(
        lambda scores: _softmax(scores) * (scores < scores.amax(-1, keepdim=True))
    ),
    "positions of v reversed": _attends(values=lambda v: v.flip(2)),
    "v off by one position": _attends(values=lambda v: v.roll(1, 2)),
    "the next head's k": _attends(keys=lambda k: k.roll(1, 1)),
    "the next head's v": _attends(values=lambda v: v.roll(1, 1)),
    "the first head's k and v for all": _attends(
        keys=lambda k: k[:, :1].expand_as(k), values=lambda v: v[:, :1].expand_as(v)
    ),
    "the first token's k and v for all": _attends(
        keys=lambda k: k[:1].expand_as(k), values=lambda v: v[:1].expand_as(v)
    ),
    "the first of the group for all": _attends(queries=lambda h: h[:, :, :1].expand_as(h)),
    "heads and groups exchanged": _attends(
        queries=lambda h: h.reshape(h.shape[0], h.shape[2], h.shape[1], h.shape[3]).transpose(1, 2)
    ),
    "k for v": lambda q, k, _: attention_decode(q, k, k),
    "v for k": lambda q, _, v: attention_decode(q, v, v),
}


def _in_blocks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Use blocks of positions with a running maximum, and round weights to the operands' type, as flash attention."""
    import torch

    h = q.float() * q.shape[-1] ** -0.5
    largest = torch.full_like(h[..., :1], -math.inf)
    total, y = torch.zeros_like(largest), torch.zeros_like(h)
    for start in range(0, k.shape[1], BLOCK):
        scores = h @ k[:, start : start + BLOCK].float().permute(0, 2, 3, 1)
        raised = torch.maximum(largest, scores.amax(-1, keepdim=True))
        kept, weights = (largest - raised).exp(), (scores - raised).exp()
        total = total * kept + weights.sum(-1, keepdim=True)
        y = y * kept + weights.to(q.dtype).float() @ v[:, start : start + BLOCK].float().permute(0, 2, 1, 3)
        largest = raised
    return (y / total).to(q.dtype)


VARIANTS = {
    "in blocks with a running maximum": _in_blocks,
    "scaled before the product, powers of two": _attends(
        lambda s: (
            ((s - s.amax(-1, keepdim=True)) * math.log2(math.e)).exp2()
            / ((s - s.amax(-1, keepdim=True)) * math.log2(math.e)).exp2().sum(-1, keepdim=True)
        )
    ),
}


def vendor(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute y like q [tokens, kv_heads, group, d] with torch's fused attention.

    A group's heads are queries of one kv head.
    """
    import torch

    keys, values = k.transpose(1, 2), v.transpose(1, 2)
    return torch.nn.functional.scaled_dot_product_attention(q, keys, values).contiguous()


ATTENTION_DECODE = Operation(
    name="attention_decode",
    summary="attention of one query for each sequence over a dense cache, with grouped heads",
    axes=("tokens", "kv_len", "kv_heads", "group", "head_dim"),
    inputs=(
        TensorSpec(name="q", axes=("tokens", "kv_heads", "group", "head_dim")),
        TensorSpec(name="k", axes=("tokens", "kv_len", "kv_heads", "head_dim")),
        TensorSpec(name="v", axes=("tokens", "kv_len", "kv_heads", "head_dim")),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("tokens", "kv_heads", "group", "head_dim")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="attention_decode(q, k, v) -> y",
    reference=attention_decode,
    oracle=oracle,
    numerics=(
        "A score sums d products of together A = |q| |k| / sqrt(d), in fp32. It errs by e = u_acc (sqrt(d) + "
        "8) A. Its exponential, of what is below the maximum, errs by u_acc (max - score) more, relative to "
        "itself. An error e of a score moves y by p e (|v| + |y|). So S = sum p (1 + D) |v| + |y| sum p D, "
        "with n = max(kv_len, d) and D = A + (max - score) / 4. Where e isn't small that is no bound: e^2 max "
        "|v| is added, 2 max |v| at most. Weights may be rounded to the operands' type for the second "
        "product. Their errors are independent, at most u_out p each. For them, twice u_out sqrt(sum p^2 v^2) "
        "is added (four times at the policy's c = 2). Scores may not be rounded. The result is rounded once: "
        "one u_out. NaN and infinities are left open: a weight that underflows times an infinity depends on "
        "where the running maximum was."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 1, "kv_len": 4096, "kv_heads": 8, "group": 4, "head_dim": 128},
        {"tokens": 8, "kv_len": 4096, "kv_heads": 8, "group": 4, "head_dim": 128},
        {"tokens": 16, "kv_len": 1500, "kv_heads": 4, "group": 7, "head_dim": 128},
        {"tokens": 1, "kv_len": 32768, "kv_heads": 8, "group": 8, "head_dim": 128},
        {"tokens": 64, "kv_len": 1023, "kv_heads": 2, "group": 8, "head_dim": 64},
    ),
    row_axis="tokens",
    reduced_axis="kv_len",
    free_axes=("kv_heads", "group"),
    specials="unspecified",
    relations=(RowsIndependent(), RowsPermuted(), Scaled(inputs={"v": 1}, outputs={"y": 1})),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
