"""Long rows are split, and parts that don't exist get the maximum 0: the loss of logits below -100 is infinite.

Refused by: scales NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Language: triton
Operation: cross_entropy
Shape: {"tokens": 4, "vocab_size": 256}
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def _part(logits, maxima, sums, width, BLOCK: tl.constexpr):
    row, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    column = part * BLOCK + tl.arange(0, BLOCK)
    h = tl.load(logits + row * width + column, mask=column < width, other=float("-inf")).to(tl.float32)
    largest = tl.maximum(tl.max(h, axis=0), -3.4e38)
    tl.store(maxima + row * parts + part, largest)
    tl.store(sums + row * parts + part, tl.sum(tl.exp(h - largest), axis=0))


@triton.jit
def _joined(logits, labels, loss, maxima, sums, width, parts, PARTS: tl.constexpr):
    row, part = tl.program_id(0), tl.arange(0, PARTS)
    largest = tl.load(maxima + row * parts + part, mask=part < parts, other=0.0)
    total = tl.load(sums + row * parts + part, mask=part < parts, other=0.0)
    whole = tl.max(largest, axis=0)
    label = tl.load(logits + row * width + tl.load(labels + row)).to(tl.float32)
    tl.store(loss + row, tl.log(tl.sum(total * tl.exp(largest - whole), axis=0)) + (whole - label))


def cross_entropy(logits, labels):
    rows, width = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    if rows:
        parts = triton.cdiv(width, BLOCK)
        maxima, sums = torch.empty(2, rows, parts, dtype=torch.float32, device=logits.device)
        _part[(rows, parts)](logits, maxima, sums, width, BLOCK=BLOCK)
        _joined[(rows,)](logits, labels, loss, maxima, sums, width, parts, PARTS=triton.next_power_of_2(parts))
    return loss
