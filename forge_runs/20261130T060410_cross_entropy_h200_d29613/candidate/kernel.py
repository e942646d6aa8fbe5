"""Cross-entropy from one read of the logits: every lane keeps its own maximum and rescaled sum, joined at the end.

A lane takes eight logits at once, which are 16 bytes in half precision, so that its sum is rescaled once for all of
them. A few tokens don't fill a GPU, so that their vocabulary is split among programs, whose maxima and sums a second
kernel joins.
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096
AT_ONCE = 8
"""Logits that a lane takes in one step."""
TILE = 2048
"""Elements of a program that has several short rows."""
PROGRAMS = 528
"""Four for each of an H200's 132 multiprocessors."""
LOWEST = tl.constexpr(-3.4028234663852886e38)
"""Of fp32's finite numbers: a lane that has seen nothing but -inf keeps it, and the sum 0."""


@triton.jit
def _join(largest, total, label, AXIS: tl.constexpr):
    """The loss from lanes' maxima and sums; an infinite maximum makes it NaN, as it does the reference's."""
    whole = tl.max(largest, axis=AXIS, keep_dims=True)
    sums = tl.sum(total * tl.exp(largest - whole), axis=AXIS, keep_dims=True)
    return tl.log(sums) + (whole - label)


@triton.jit
def _short_rows(logits, labels, loss, rows, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (columns < width)
    h = tl.load(logits + row * width + columns, mask=inside, other=float("-inf")).to(tl.float32)
    label = tl.load(labels + row, mask=row < rows, other=0)
    chosen = tl.load(logits + row * width + label, mask=row < rows, other=0.0).to(tl.float32)
    ones = tl.where(inside, 1.0, 0.0)
    tl.store(loss + row, _join(h, ones, chosen, 1), mask=row < rows)


@triton.jit
def _long_row(
    logits,
    labels,
    loss,
    maxima,
    sums,
    width,
    share,
    SPLIT: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * share
    last = tl.minimum(first + share, width)
    columns = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK // AT_ONCE], LOWEST, tl.float32)
    total = tl.zeros([BLOCK // AT_ONCE], tl.float32)
    for start in range(first, last, BLOCK):
        at = start + columns
        h = tl.load(logits + row * width + at, mask=at < last, other=float("-inf"), eviction_policy="evict_first").to(
            tl.float32
        )
        h = tl.reshape(h, [BLOCK // AT_ONCE, AT_ONCE])
        raised = tl.maximum(largest, tl.max(h, axis=1))
        total = total * tl.exp(largest - raised) + tl.sum(tl.exp(h - raised[:, None]), axis=1)
        largest = raised
    if SPLIT:
        whole = tl.max(largest, axis=0)
        part = tl.sum(total * tl.exp(largest - whole), axis=0)
        place = row * tl.num_programs(1) + tl.program_id(1)
        tl.store(maxima + place, whole)
        tl.store(sums + place, part)
    else:
        label = tl.load(labels + row)
        chosen = tl.load(logits + row * width + label).to(tl.float32)
        joined = _join(largest, total, chosen, 0)
        tl.store(loss + row + tl.arange(0, 1), joined)


@triton.jit
def _joined(logits, labels, loss, maxima, sums, width, parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PARTS)
    largest = tl.load(maxima + row * parts + part, mask=part < parts, other=LOWEST)
    total = tl.load(sums + row * parts + part, mask=part < parts, other=0.0)
    label = tl.load(labels + row)
    chosen = tl.load(logits + row * width + label).to(tl.float32)
    tl.store(loss + row + tl.arange(0, 1), _join(largest, total, chosen, 0))


def cross_entropy(logits, labels):
    """logits [tokens, vocab_size], labels [tokens] in int64 -> loss [tokens] in fp32."""
    rows, width = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    if rows and width <= BLOCK:
        columns = triton.next_power_of_2(width)
        together = max(1, min(TILE // columns, triton.next_power_of_2(rows) // 256))
        warps = min(8, max(1, together * columns // 512))
        _short_rows[(triton.cdiv(rows, together),)](
            logits, labels, loss, rows, width, ROWS=together, COLUMNS=columns, num_warps=warps
        )
    elif rows:
        blocks = triton.cdiv(width, BLOCK)
        share = triton.cdiv(blocks, min(blocks, triton.cdiv(PROGRAMS, rows)))
        parts = triton.cdiv(blocks, share)
        partial = torch.empty(2, rows * parts if parts > 1 else 0, dtype=torch.float32, device=logits.device)
        _long_row[(rows, parts)](
            logits,
            labels,
            loss,
            partial[0],
            partial[1],
            width,
            share * BLOCK,
            SPLIT=parts > 1,
            BLOCK=BLOCK,
            AT_ONCE=AT_ONCE,
            num_warps=8,
        )
        if parts > 1:
            _joined[(rows,)](
                *(logits, labels, loss, partial[0], partial[1], width, parts),
                PARTS=triton.next_power_of_2(parts),
                num_warps=1,
            )
    return loss
