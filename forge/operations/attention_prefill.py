"""Causal attention of a chunk of one sequence's queries over its keys and values: prefill with grouped heads.

Source of the definition: Vaswani et al., "Attention Is All You Need" (2017), equation 1 and section 3.2.3, scores
times 1 / sqrt(d). Heads share keys and values in groups: Ainslie et al., "GQA" (2023). The queries are those of the
last `tokens` of `kv_len` positions, so the mask is aligned to its lower right corner. A query that sees nothing gives
zeros. Both are as in FlashAttention 2.1. A whole prompt has tokens = kv_len; later chunks have fewer tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, UNIT_ROUNDOFF, DType, TensorSpec
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share_of_weighted

if TYPE_CHECKING:
    import torch

BESIDE_THE_SUM = 8.0
"""Constant added to sqrt(n) in the error bound, for the steps besides the sum, as in docs/numerics.md."""
BLOCK = 48
"""Number of terms that a variant adds in one block. It divides no usual size, so the last block is partial."""
ORACLE_SCORES = 2**23
"""Largest number of scores that the oracle holds in fp64 at once, 64 MiB. A single query may have more."""


def attention_prefill(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Q [tokens, kv_heads, group, d], k, v [kv_len, kv_heads, d] -> y like q, computed in fp32.

    Query i sees positions 0 to kv_len - tokens + i; one that sees none answers zeros.
    """
    import torch

    tokens, length = q.shape[0], k.shape[0]
    hidden = torch.ones(tokens, length, dtype=torch.bool, device=q.device).triu(length - tokens + 1)
    scores = (q.float().permute(1, 2, 0, 3) @ k.float().permute(1, 2, 0).unsqueeze(1)) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1).masked_fill(hidden, 0.0)
    y = weights @ v.float().transpose(0, 1).unsqueeze(1)
    return y.permute(2, 0, 1, 3).to(q.dtype).contiguous()


# Compute y like q [tokens, kv_heads, group, d] in fp64, from k and v [kv_len, kv_heads, d].
# Some queries are computed at a time, to save memory. The error scale, shaped like y, bounds what errors of the
# scores and of the weights do to the sum over the values.
def oracle(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64, some queries at a time."""
    import torch

    tokens, length = q.shape[0], k.shape[0]
    at_once = max(1, ORACLE_SCORES // max(1, length * q.shape[1] * q.shape[2]))
    parts = [_some(q, k, v, slice(start, start + at_once)) for start in range(0, max(1, tokens), at_once)]
    value, scale, lost = (torch.cat(one).contiguous() for one in zip(*parts, strict=True))
    together = v.double().square().sum(0).sqrt().unsqueeze(1).expand_as(value)
    terms = max(q.shape[-1], length)
    return (Expectation(value=value, scale=scale, terms=terms, last_factor=together, drift=lost),)


def _some(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, chosen: slice) -> tuple[torch.Tensor, ...]:
    """Return value, S and what running sums may drop, of the chosen queries, tokens first."""
    import torch

    length, scale = k.shape[0], q.shape[-1] ** -0.5
    query, keys = q[chosen].double().permute(1, 2, 0, 3), k.double().permute(1, 2, 0).unsqueeze(1)
    values = v.double().transpose(0, 1).unsqueeze(1)
    hidden = _hidden(q.shape[0], length).to(q.device)[chosen]
    scores = ((query @ keys) * scale).masked_fill(hidden, -math.inf)
    p = scores.softmax(-1).masked_fill(hidden, 0.0)
    y = p @ values
    summed = ((query.abs() @ keys.abs()) * scale).masked_fill(hidden, 0.0)
    below = (scores.amax(-1, keepdim=True) - scores).masked_fill(hidden, 0.0)
    doubt = summed + below / 4
    unit = UNIT_ROUNDOFF["fp32"] * (math.sqrt(max(q.shape[-1], length)) + BESIDE_THE_SUM)
    size = (p * (1 + doubt)) @ values.abs() + (p * doubt).sum(-1, keepdim=True) * y.abs()
    coarse = torch.finfo(q.dtype).eps * (p.square() @ values.square()).sqrt()
    sees = (~hidden).sum(-1)
    largest = values.abs().cummax(-2).values[..., (sees - 1).clamp(min=0), :] * (sees > 0).unsqueeze(-1)
    far = (unit * summed.amax(-1, keepdim=True)).square().clamp(max=1.0) * largest * 2
    whole = size + (coarse + far) / unit
    lost = drift_share_of_weighted(p, values).expand_as(y)
    return y.permute(2, 0, 1, 3), whole.permute(2, 0, 1, 3), lost.permute(2, 0, 1, 3)


def _hidden(tokens: int, length: int, further: int = 0) -> torch.Tensor:
    """Return a mask [tokens, kv_len] of the positions that a query doesn't see; it sees `further` too many."""
    import torch

    return torch.ones(tokens, length, dtype=torch.bool).triu(length - tokens + 1 + further)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    width = shape["kv_heads"] * shape["head_dim"]
    return 2 * width * (shape["tokens"] * shape["group"] + shape["kv_len"]) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    """Return the flops: two products for each pair of a query and a position that it sees."""
    tokens, length = shape["tokens"], shape["kv_len"]
    some = min(tokens, length)
    pairs = some * (length - some) + some * (some + 1) // 2
    return 4 * pairs * shape["kv_heads"] * shape["group"] * shape["head_dim"]


Attention = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]
Change = Callable[["torch.Tensor"], "torch.Tensor"]
Mask = Callable[[int, int], "torch.Tensor"]


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    return scores.softmax(-1)


def _attends(
    weigh: Change = _softmax,
    mask: Mask = _hidden,
    queries: Change = _same,
    keys: Change = _same,
    values: Change = _same,
    instead: float = -math.inf,
) -> Attention:
    """Return attention in fp32 with one step replaced; operands are [tokens, ...] and [kv_len, kv_heads, d]."""

    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        hidden = mask(q.shape[0], k.shape[0])
        h = queries(q.float()).permute(1, 2, 0, 3)
        scores = (h @ keys(k.float()).permute(1, 2, 0).unsqueeze(1)) * q.shape[-1] ** -0.5
        weights = weigh(scores.masked_fill(hidden, instead)).masked_fill(hidden, 0.0)
        y = weights @ values(v.float()).transpose(0, 1).unsqueeze(1)
        return y.permute(2, 0, 1, 3).to(q.dtype).contiguous()

    return function


def _also(hidden: Callable[[torch.Tensor], torch.Tensor]) -> Mask:
    """Return the causal mask that also hides the positions of `hidden` from all queries."""
    return lambda tokens, length: _hidden(tokens, length) | hidden(_positions(length))


def _positions(length: int) -> torch.Tensor:
    import torch

    return torch.arange(length)


def _window(tokens: int, length: int) -> torch.Tensor:
    """Return a mask with which each query sees only its last 64 positions."""
    return _hidden(tokens, length) | ~_hidden(tokens, length, -64)


def _masked_afterwards(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Take the softmax over all positions, and leave the hidden ones out afterwards."""
    scores = (q.float().permute(1, 2, 0, 3) @ k.float().permute(1, 2, 0).unsqueeze(1)) * q.shape[-1] ** -0.5
    weights = scores.softmax(-1).masked_fill(_hidden(q.shape[0], k.shape[0]), 0.0)
    return (weights @ v.float().transpose(0, 1).unsqueeze(1)).permute(2, 0, 1, 3).to(q.dtype).contiguous()


def _means_for_the_blind(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Give the mean of all values for a query that sees nothing, as a mask of large negative numbers does."""
    y = attention_prefill(q, k, v)
    y[: max(0, q.shape[0] - k.shape[0])] = v.float().mean(0).unsqueeze(1).to(q.dtype)
    return y


MUTANTS = {
    "no mask": _attends(mask=lambda tokens, length: _hidden(tokens, length) & False),
    "one position too many seen": _attends(mask=lambda tokens, length: _hidden(tokens, length, 1)),
    "a query doesn't see itself": _attends(mask=lambda tokens, length: _hidden(tokens, length, -1)),
    "mask aligned to the upper left corner": _attends(
        mask=lambda tokens, length: _hidden(tokens, length, tokens - length)
    ),
    "mask the other way around": _attends(mask=lambda tokens, length: ~_hidden(tokens, length, -1)),
    "masked with zeros": _attends(instead=0.0),
    "masked after the softmax": _masked_afterwards,
    "a mean where nothing is seen": _means_for_the_blind,
    "a window of 64 positions": _attends(mask=_window),
    "the first position not seen": _attends(mask=_also(lambda at: at == 0)),
    "the second half not seen": _attends(mask=_also(lambda at: at >= at.numel() // 2)),
    "the rest beyond blocks of 64 not seen": _attends(mask=_also(lambda at: at >= at.numel() // 64 * 64)),
    "scores not scaled": _attends(queries=lambda h: h * h.shape[-1] ** 0.5 if h.shape[-1] > 1 else h * 2),
    "scaled by twice as much": _attends(queries=lambda h: h * 2),
    "all positions alike": _attends(queries=lambda h: h * 0),
    "powers of two": _attends(queries=lambda h: h * math.log(2)),
    "the largest score alone": _attends(lambda scores: (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)),
    "not normalised": _attends(lambda scores: (scores - scores.amax(-1, keepdim=True)).exp()),
    "positions of v reversed": _attends(values=lambda v: v.flip(0)),
    "v off by one position": _attends(values=lambda v: v.roll(1, 0)),
    "the next head's k": _attends(keys=lambda k: k.roll(1, 1)),
    "the next head's v": _attends(values=lambda v: v.roll(1, 1)),
    "the first head's k and v for all": _attends(
        keys=lambda k: k[:, :1].expand_as(k), values=lambda v: v[:, :1].expand_as(v)
    ),
    "the first of the group for all": _attends(queries=lambda h: h[:, :, :1].expand_as(h)),
    "the first query for all": _attends(queries=lambda h: h[:1].expand_as(h)),
    "heads and groups exchanged": _attends(
        queries=lambda h: h.reshape(h.shape[0], h.shape[2], h.shape[1], h.shape[3]).transpose(1, 2)
    ),
    "k for v": lambda q, k, _: attention_prefill(q, k, k),
    "v for k": lambda q, _, v: attention_prefill(q, v, v),
}


def _in_blocks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Use blocks of positions with a running maximum, and round weights to the operands' type, as flash attention."""
    import torch

    h, hidden = q.float().permute(1, 2, 0, 3) * q.shape[-1] ** -0.5, _hidden(q.shape[0], k.shape[0])
    largest = torch.full_like(h[..., :1], -math.inf)
    total, y = torch.zeros_like(largest), torch.zeros_like(h)
    for start in range(0, k.shape[0], BLOCK):
        block = slice(start, start + BLOCK)
        scores = h @ k[block].float().permute(1, 2, 0).unsqueeze(1)
        scores = scores.masked_fill(hidden[:, block], -math.inf)
        raised = torch.maximum(largest, scores.amax(-1, keepdim=True))
        finite = raised.nan_to_num(neginf=0.0)
        kept, weights = (largest - finite).exp(), (scores - finite).exp()
        total = total * kept + weights.sum(-1, keepdim=True)
        y = y * kept + weights.to(q.dtype).float() @ v[block].float().transpose(0, 1).unsqueeze(1)
        largest = raised
    return (y / total.clamp(min=0.5)).permute(2, 0, 1, 3).to(q.dtype).contiguous()


def _exponential_of_two(scores: torch.Tensor) -> torch.Tensor:
    powers = ((scores - scores.amax(-1, keepdim=True)) * math.log2(math.e)).exp2()
    return powers / powers.sum(-1, keepdim=True)


VARIANTS = {
    "in blocks with a running maximum": _in_blocks,
    "scaled before the product, powers of two": _attends(_exponential_of_two),
}


def vendor(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute with torch's fused attention: by its causal option for a whole prompt, by a mask for a later chunk."""
    import torch

    tokens, length = q.shape[0], k.shape[0]
    queries = q.reshape(tokens, q.shape[1] * q.shape[2], q.shape[3]).transpose(0, 1).unsqueeze(0)
    keys, values = k.transpose(0, 1).unsqueeze(0), v.transpose(0, 1).unsqueeze(0)
    seen = torch.ones(tokens, length, dtype=torch.bool, device=q.device).tril(length - tokens)
    mask = None if tokens == length else seen
    y = torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, is_causal=mask is None, enable_gqa=True
    )
    y = y.squeeze(0).transpose(0, 1).reshape(q.shape).contiguous()
    return y * 0 if length == 0 else y.nan_to_num(0.0) if tokens > length else y


ATTENTION_PREFILL = Operation(
    name="attention_prefill",
    summary="causal attention of a chunk of one sequence's queries over its keys and values, with grouped heads",
    axes=("tokens", "kv_len", "kv_heads", "group", "head_dim"),
    inputs=(
        TensorSpec(name="q", axes=("tokens", "kv_heads", "group", "head_dim")),
        TensorSpec(name="k", axes=("kv_len", "kv_heads", "head_dim")),
        TensorSpec(name="v", axes=("kv_len", "kv_heads", "head_dim")),
    ),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("tokens", "kv_heads", "group", "head_dim")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="attention_prefill(q, k, v) -> y",
    reference=attention_prefill,
    oracle=oracle,
    numerics=(
        "Of the positions that a query sees, a score sums d products of together A = |q| |k| / sqrt(d), in "
        "fp32. It errs by e = u_acc (sqrt(d) + 8) A. Its exponential, of what is below the maximum, errs by "
        "u_acc (max - score) more, relative to itself. An error e of a score moves y by p e (|v| + |y|). So S "
        "= sum p (1 + D) |v| + |y| sum p D, with n = max(kv_len, d) and D = A + (max - score) / 4. Where e "
        "isn't small that is no bound: e^2 max |v| is added, 2 max |v| at most. Weights may be rounded to the "
        "operands' type for the second product. Their errors are independent, at most u_out p each. For them, "
        "twice u_out sqrt(sum p^2 v^2) is added (four times at the policy's c = 2). Scores may not be "
        "rounded. The result is rounded once: one u_out. A query that sees nothing answers zeros. NaN and "
        "infinities are left open: a weight that underflows times an infinity depends on where the running "
        "maximum was."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 512, "kv_len": 512, "kv_heads": 8, "group": 4, "head_dim": 128},
        {"tokens": 2048, "kv_len": 2048, "kv_heads": 8, "group": 4, "head_dim": 128},
        {"tokens": 512, "kv_len": 4096, "kv_heads": 8, "group": 4, "head_dim": 128},
        {"tokens": 1023, "kv_len": 1500, "kv_heads": 4, "group": 7, "head_dim": 128},
        {"tokens": 100, "kv_len": 1001, "kv_heads": 2, "group": 8, "head_dim": 64},
    ),
    row_axis="tokens",
    reduced_axis="kv_len",
    free_axes=("kv_heads", "group"),
    specials="unspecified",
    relations=(RowsIndependent(), Scaled(inputs={"v": 1}, outputs={"y": 1})),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)
