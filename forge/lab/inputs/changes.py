"""Changes a case a little, so that a cached answer to the first question is wrong for the second one."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent
from forge.domain.tensors import Between, Counts, Parts, Slots, Whole
from forge.lab.inputs.distributions import OPERAND_SHIFT
from forge.lab.inputs.integers import draw_numbers
from forge.lab.inputs.seeded import SEED_BITS
from forge.lab.inputs.undivided import undivided_if_small
from forge.lab.largest import first_largest
from forge.lab.observed import Case
from forge.operations.operation import Operation

if TYPE_CHECKING:
    import torch

LOW_BITS = {4: 0xFFFF, 2: 0x7F}
"""Mask of the bits that are drawn anew, by element size in bytes: the lower half of fp32, the mantissa of bf16. The
remaining bits give a number to 2^-7 or less precisely."""
COARSEST = 3
"""Number of powers of two between the finest and the coarsest step that elements are rounded to. The finest is 2^-6
of the largest value. The coarsest is 2^-3, and leaves four to eight steps up to the largest value."""
PATTERNED = (Parts, Slots, Between, Counts, Whole)
"""Rules of numbers that are drawn in a usual pattern for normal values, and in a random one for most other kinds."""
MOST_TRIES = 16
"""Number of random tries to find two elements that differ. In rows that are 95 % zeros, they succeed in 81 % of
cases; otherwise the first element is swapped."""
LAST = 16
"""Number of places at a row's end, at one of which its largest number is put. Chosen: vectors have at most as many
elements, so that any remainder is among them."""
MOVED_SHARE, VERY_LAST_SHARE = 0.75, 0.5
"""Share of rows whose largest number is put at their end, and share of these where it comes last. Chosen: a wide
shape has two rows, and a row's largest number must be elsewhere too."""

LAST_ROWS = 7
"""Number of last rows, one of which gets the largest number of all. Chosen: what eight threads leave over."""
FURTHEST = 64.0
"""Largest distance from zero to which rows of shifted operands are moved. Chosen: exp(-64) is 2e-28, far above the
smallest number, and below all constants that kernels add to a sum."""


def swap_in_row(case: Case, position: int, rng: random.Random) -> Case:
    """Swap two elements that differ in one row of one operand: the smallest change that makes a new question."""
    changed = case.inputs[position].clone()
    if changed.dim() == 0 or changed.shape[-1] < 2 or not changed.numel():
        return case
    rows = changed.view(-1, changed.shape[-1])
    for _ in range(MOST_TRIES):
        row, (one, other) = rows[rng.randrange(len(rows))], two_places(changed.shape[-1], rng)
        if row[one].item() != row[other].item():
            row[[one, other]] = row[[other, one]]
            break
    else:
        _swap_with_first(rows[rng.randrange(len(rows))])
    return _with_input(case, position, changed)


def _swap_with_first(row: torch.Tensor) -> None:
    """Swap the first element with one that differs.

    In a short row, such as groups' sizes, all inner elements may be equal.
    """
    others = (row != row[0]).nonzero()
    if len(others):
        other = int(others[0])
        row[[0, other]] = row[[other, 0]]


def largest_at_the_end(operation: Operation, case: Case, rng: random.Random) -> Case:
    """Swap the largest number of most rows, at random, with one of their last: their last in half of those.

    A largest value that leaves a row's tail out then shows, and each row has the numbers that were drawn. Where rows
    depend on each other, the row with the largest number of all mostly becomes one of the last.
    """
    import torch

    generator = torch.Generator().manual_seed(rng.getrandbits(SEED_BITS))
    with undivided_if_small(operation, case.shape):
        for spec in operation.activations:
            position = operation.inputs.index(spec)
            whole = case.inputs[position]
            if position in operation.still or spec.axes[-1] != operation.reduced_axis or whole.itemsize == 1:
                continue
            if whole.is_floating_point() and whole.numel():
                rows = whole.clone(memory_format=torch.contiguous_format).view(-1, whole.shape[-1])
                _move_largest(rows, generator)
                if RowsIndependent() not in operation.relations and rng.random() < MOVED_SHARE:
                    first = int(first_largest(rows.abs().amax(-1)))
                    last_row = len(rows) - 1 - rng.randrange(min(LAST_ROWS, len(rows)))
                    rows[[first, last_row]] = rows[[last_row, first]]
                case = _with_input(case, position, rows.view(whole.shape))
    return case


def _move_largest(rows: torch.Tensor, generator: torch.Generator) -> None:
    """Swap the largest number of most rows with one of the last in its row."""
    import torch

    moved = torch.rand(len(rows), 1, generator=generator) < MOVED_SHARE
    last = torch.rand(len(rows), 1, generator=generator) < VERY_LAST_SHARE
    from_end = torch.randint(min(LAST, rows.shape[1]), moved.shape, generator=generator)
    largest = first_largest(rows).unsqueeze(-1)
    place = torch.where(moved, rows.shape[1] - 1 - from_end.masked_fill(last, 0), largest)
    there, most = rows.gather(-1, place), rows.gather(-1, largest)
    rows.scatter_(-1, largest, there).scatter_(-1, place, most)


def shifted_further(operation: Operation, case: Case, rng: random.Random) -> Case:
    """Move each row of an activation further from zero, to the side where it lies: by up to `FURTHEST` in all.

    Exponentials of such rows are tiny but normal, so a constant that is added to their sum shows, or a lower limit.
    """
    import torch

    generator = torch.Generator().manual_seed(rng.getrandbits(SEED_BITS))
    for spec in operation.activations:
        position = operation.inputs.index(spec)
        whole = case.inputs[position]
        if whole.is_floating_point() and whole.itemsize > 1 and whole.numel():
            rows = whole.double().flatten(1) if whole.dim() > 1 else whole.double().unsqueeze(-1)
            times = (torch.rand(len(rows), 1, generator=generator) * math.log2(FURTHEST / OPERAND_SHIFT)).exp2()
            further = OPERAND_SHIFT * (times - 1) * rows.mean(-1, keepdim=True).sign()
            case = _with_input(case, position, (rows + further).to(whole.dtype).view(whole.shape))
    return case


def swap_anywhere(case: Case, position: int, rng: random.Random) -> Case:
    """Swap two random elements of one operand, in any of its rows; leave fewer than four elements alone."""
    flat = case.inputs[position].clone().reshape(-1)
    if flat.numel() >= 4:
        one, other = two_places(flat.numel(), rng)
        flat[[one, other]] = flat[[other, one]]
    return _with_input(case, position, flat.reshape(case.inputs[position].shape))


def swap_columns(case: Case, positions: Iterable[int], rng: random.Random) -> Case:
    """Swap two columns of each of these operands: sums, norms and extremes of rows stay as they were."""
    for position in positions:
        changed = case.inputs[position].clone()
        if changed.shape[-1] >= 2:
            one, other = two_places(changed.shape[-1], rng)
            changed[..., [one, other]] = changed[..., [other, one]]
        case = _with_input(case, position, changed)
    return case


def two_places(width: int, rng: random.Random) -> tuple[int, int]:
    """Return two different places in a row at random, at a distance that is a power of two.

    Near swaps keep the sums of blocks; even distances keep what is sampled at a stride. If the row has four places or
    more, its first and last are left out.
    """
    first, count = (1, width - 2) if width >= 4 else (0, width)
    apart = 2 ** rng.randrange((count - 1).bit_length() or 1)
    one = first + rng.randrange(count - apart)
    return one, one + apart


def low_bits(case: Case, positions: Iterable[int]) -> Case:
    """Draw the low bits of these operands' floats anew, within the range of the old values."""
    import torch

    generator = torch.Generator().manual_seed(case.seed)
    for position in positions:
        whole = case.inputs[position]
        mask = LOW_BITS.get(whole.itemsize, 0)
        if mask and whole.numel():
            bits = whole.view(torch.int32 if whole.itemsize == 4 else torch.int16)
            fresh = torch.randint(mask + 1, bits.shape, generator=generator).to(bits.dtype)
            changed = ((bits & ~mask) | fresh).view(whole.dtype)
            case = _with_input(case, position, changed.clamp(whole.min(), whole.max()))
    return case


def low_bits_flipped(case: Case, positions: Iterable[int], rng: random.Random) -> Case:
    """Flip some low bits of these operands' floats, the same in all elements, within the range of the old values."""
    import torch

    for position in positions:
        whole = case.inputs[position]
        mask = LOW_BITS.get(whole.itemsize, 0)
        if mask and whole.numel():
            bits = whole.view(torch.int32 if whole.itemsize == 4 else torch.int16)
            changed = bits.bitwise_xor(rng.randint(1, mask)).view(whole.dtype)
            case = _with_input(case, position, changed.clamp_(whole.min(), whole.max()))
    return case


def coarse(operation: Operation, case: Case) -> Case:
    """Round each activation to an odd multiple of a step, which is 2^-6 of its largest value or more.

    The steps of the first operands are different powers of two. So no value is zero, and no sum of two operands'
    values.
    """
    for turn, spec in enumerate(operation.activations):
        position = operation.inputs.index(spec)
        values = case.inputs[position].double()
        if values.numel():
            step = 2.0 ** (math.frexp(values.abs().max().item())[1] - 6 + min(turn, COARSEST))
            odd = (values / (2 * step)).floor() * 2 + 1
            case = _with_input(case, position, (odd * step).to(case.inputs[position].dtype))
    return dataclasses.replace(case, kind="ties")


def flipped_weights(operation: Operation, case: Case) -> Case:
    """Change the sign and the order of each weight's values, by way of a type that torch has both for."""
    inputs = tuple(
        tensor
        if operation.row_axis in spec.axes or not spec.follows_kind
        else (-tensor.double().flip(-1)).to(tensor.dtype)
        for spec, tensor in zip(operation.inputs, case.inputs, strict=True)
    )
    return dataclasses.replace(case, inputs=inputs)


def other_scalars(case: Case) -> Case:
    """Change each scalar to a much larger one."""
    return dataclasses.replace(case, scalars=tuple(0.125 + 1000 * value for value in case.scalars))


def has_patterns(operation: Operation) -> bool:
    """Return whether an operand has usual patterns of numbers and others, as groups' sizes have."""
    return any(isinstance(spec.values, PATTERNED) for spec in operation.inputs)


def unusual_patterns(operation: Operation, case: Case, rng: random.Random) -> Case:
    """Draw the operands that have patterns anew, each in a random one: empty groups, all rows in one, no slot."""
    import torch

    generator = torch.Generator().manual_seed(rng.getrandbits(SEED_BITS))
    for position, spec in enumerate(operation.inputs):
        if isinstance(spec.values, PATTERNED):
            drawn = draw_numbers(spec, case.shape, {}, generator, usual=False)
            case = _with_input(case, position, drawn.to(case.inputs[position].dtype).contiguous())
    return case


def taken_over(case: Case, other: Case, positions: Iterable[int]) -> Case:
    """Replace these operands by those of another case."""
    for position in positions:
        case = _with_input(case, position, other.inputs[position])
    return case


def with_rows(operation: Operation) -> list[int]:
    """Return the positions of the operands with rows."""
    return [place for place, spec in enumerate(operation.inputs) if operation.row_axis in spec.axes]


def _with_input(case: Case, position: int, changed: torch.Tensor) -> Case:
    return dataclasses.replace(case, inputs=(*case.inputs[:position], changed, *case.inputs[position + 1 :]))
