"""Does the answer follow the question, if the tensors are the same objects and only their contents are new?

A cache needs a key: a pointer, a version, a few sampled elements, sums of blocks, or upper bits. So this gate puts
new contents into the same storage, in this order. First come fresh values, then changes in low bits, a new weight,
and a new scalar. Then two elements of one operand change places within a row, which keeps cheap statistics of the
row. This is done for every operand, weights and positions included. Last comes the first question again.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.seeded import Seeded
from forge.lab.observed import Case

if TYPE_CHECKING:
    import torch

PLACES, MORE_PLACES, COLUMNS = 4, 2, 3
"""Numbers of changes inside rows. Each operand gets one swap in one row; operands with rows get at least
`MORE_PLACES` more, at least `PLACES` in all. `COLUMNS` questions swap two whole columns in all operands with rows.
The distance of a swap is a random power of two. Near swaps keep the sums of blocks; even distances keep what is
sampled at a stride."""
LOW_BITS = {4: 0xFFFF, 2: 0x7F}
"""Mask of the bits that are drawn anew, by element size in bytes: the lower half of fp32, the mantissa of bf16. The
remaining bits give a number to 2^-7 or less precisely."""
COARSEST = 3
"""Number of powers of two between the finest and the coarsest step."""
MOST_TRIES = 16
"""Number of random tries to find two elements that differ."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask related questions through the same tensors; the judge recognises an earlier answer.

    Coarse values add up without rounding errors in any order, so a change leaves every bit of a row's sum as it was.
    """
    first = kernel.case(kernel.shape)
    coarse = _coarse(kernel, kernel.case(kernel.shape))
    questions = (
        kernel.case(kernel.shape),
        first,
        with_low_bits(first, _floats(kernel)),
        _with_new_weights(kernel, first),
        _with_new_scalars(first),
        *(with_swap_in_row(first, position, kernel.rng) for position in _swapped_operands(kernel)),
        *(_with_swapped_columns(kernel, first) for _ in range(COLUMNS)),
        coarse,
        *(with_swap_in_row(coarse, position, kernel.rng) for position in _swapped_operands(kernel)),
        first,
    )
    for question in questions:
        checked = kernel.check([question])
        if isinstance(checked, Failed):
            return checked
    return Passed(observed=f"{len(questions)} related questions answered afresh", threshold="every answer fresh")


def _coarse(kernel: LoadedKernel, case: Case) -> Case:
    """Round each activation to an odd multiple of a step, which is 2^-6 of its largest value or more.

    The steps of the first operands are different powers of two. So no value is zero, and no sum of two operands'
    values.
    """
    for turn, spec in enumerate(kernel.operation.activations):
        index = kernel.operation.inputs.index(spec)
        values = case.inputs[index].double()
        if values.numel():
            step = 2.0 ** (math.frexp(values.abs().max().item())[1] - 6 + min(turn, COARSEST))
            odd = (values / (2 * step)).floor() * 2 + 1
            case = _with_input(case, index, (odd * step).to(case.inputs[index].dtype))
    return dataclasses.replace(case, kind="ties")


def _swapped_operands(kernel: LoadedKernel) -> list[int]:
    """Return the indices of the operands to change: each once, those with rows more often."""
    rng, every = kernel.rng, range(len(kernel.operation.inputs))
    return [*every, *rng.choices(_with_rows(kernel), k=max(MORE_PLACES, PLACES - len(every)))]


def with_swap_in_row(case: Case, position: int, rng: Seeded) -> Case:
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


def with_low_bits(case: Case, places: Iterable[int]) -> Case:
    """Draw the low bits of these operands' floats anew, within the range of the old values."""
    import torch

    generator = torch.Generator().manual_seed(case.seed)
    for index in places:
        whole = case.inputs[index]
        mask = LOW_BITS.get(whole.itemsize, 0)
        if mask and whole.numel():
            bits = whole.view(torch.int32 if whole.itemsize == 4 else torch.int16)
            fresh = torch.randint(mask + 1, bits.shape, generator=generator).to(bits.dtype)
            changed = ((bits & ~mask) | fresh).view(whole.dtype)
            case = _with_input(case, index, changed.clamp(whole.min(), whole.max()))
    return case


def _floats(kernel: LoadedKernel) -> list[int]:
    return [index for index, spec in enumerate(kernel.operation.inputs) if spec.follows_kind]


def _with_swapped_columns(kernel: LoadedKernel, case: Case) -> Case:
    """Swap two columns of every operand with rows: sums, norms and extremes of rows stay as they were."""
    rng = kernel.rng
    for index in _with_rows(kernel):
        changed = case.inputs[index].clone()
        if changed.shape[-1] >= 2:
            one, other = two_places(changed.shape[-1], rng)
            changed[..., [one, other]] = changed[..., [other, one]]
        case = _with_input(case, index, changed)
    return case


def two_places(width: int, rng: Seeded) -> tuple[int, int]:
    """Return two different places in a row at random.

    If the row has four places or more, its first and last are left out.
    """
    first, count = (1, width - 2) if width >= 4 else (0, width)
    apart = 2 ** rng.randrange((count - 1).bit_length() or 1)
    one = first + rng.randrange(count - apart)
    return one, one + apart


def _with_rows(kernel: LoadedKernel) -> list[int]:
    return [index for index, spec in enumerate(kernel.operation.inputs) if kernel.operation.row_axis in spec.axes]


def _with_input(case: Case, index: int, changed: torch.Tensor) -> Case:
    return dataclasses.replace(case, inputs=(*case.inputs[:index], changed, *case.inputs[index + 1 :]))


def _with_new_weights(kernel: LoadedKernel, case: Case) -> Case:
    inputs = tuple(
        tensor if kernel.operation.row_axis in spec.axes or not spec.follows_kind else -tensor.flip(-1)
        for spec, tensor in zip(kernel.operation.inputs, case.inputs, strict=True)
    )
    return dataclasses.replace(case, inputs=inputs)


def _with_new_scalars(case: Case) -> Case:
    return dataclasses.replace(case, scalars=tuple(0.125 + 1000 * value for value in case.scalars))


REPLAY = Gate(name="replay", examine=examine, runs_early=True)
