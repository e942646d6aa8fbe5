"""Does the answer follow the question, when the tensors are the same objects and only their content is new?

A cached answer is keyed by something: a pointer, a version, a few sampled elements, sums of blocks, upper bits. So
the same storage gets new content, then content that differs only inside rows of one operand, weights and positions
included, with their cheap statistics kept, or in low bits, then a new weight alone, a new scalar alone, and at last
the first question again.
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
"""Changes inside rows: of one row in one operand, so many at least, of each operand and of some once more; and of
whole columns in all with rows. Elements change places at a distance that is a power of two, drawn by lot: the near
ones leave the sums of blocks as they were, the even ones what is sampled at a stride."""
LOW_BITS = {4: 0xFFFF, 2: 0x7F}
"""By bytes: those that aren't in a float's upper half, or its exponent; the others say a number to 2^-7 or less."""
COARSEST = 3
"""Powers of two between the finest and the coarsest step."""
TRIES = 16
"""To find two elements that differ."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask related questions through the same tensors; the judge knows an earlier answer when it sees one.

    Values in coarse steps add up without rounding errors in any order: not even a sum's last bit tells a change.
    """
    first = kernel.case(kernel.shape)
    coarse = _coarse(kernel, kernel.case(kernel.shape))
    questions = (
        kernel.case(kernel.shape),
        first,
        with_low_bits(first, _floats(kernel)),
        _weight(kernel, first),
        _scalar(first),
        *(place(first, position, kernel.rng) for position in _places(kernel)),
        *(_columns(kernel, first) for _ in range(COLUMNS)),
        coarse,
        *(place(coarse, position, kernel.rng) for position in _places(kernel)),
        first,
    )
    for question in questions:
        checked = kernel.check([question])
        if isinstance(checked, Failed):
            return checked
    return Passed(observed=f"{len(questions)} related questions answered afresh", threshold="every answer fresh")


def _coarse(kernel: LoadedKernel, case: Case) -> Case:
    """Take each activation to an odd multiple of a step, of 2^-6 of its largest value or more.

    The first operands' steps are different powers of two, so that no value is zero, nor is a sum of two of theirs.
    """
    for turn, spec in enumerate(kernel.operation.activations):
        place = kernel.operation.inputs.index(spec)
        values = case.inputs[place].double()
        if values.numel():
            step = 2.0 ** (math.frexp(values.abs().max().item())[1] - 6 + min(turn, COARSEST))
            odd = (values / (2 * step)).floor() * 2 + 1
            case = _with_input(case, place, (odd * step).to(case.inputs[place].dtype))
    return dataclasses.replace(case, kind="ties")


def _places(kernel: LoadedKernel) -> list[int]:
    """Which operands change: each once, those with rows more often."""
    rng, every = kernel.rng, range(len(kernel.operation.inputs))
    return [*every, *rng.choices(_with_rows(kernel), k=max(MORE_PLACES, PLACES - len(every)))]


def place(case: Case, position: int, rng: Seeded) -> Case:
    """Swap two elements that differ, in one row of one operand: the least that can be asked anew."""
    changed = case.inputs[position].clone()
    if changed.dim() == 0 or changed.shape[-1] < 2 or not changed.numel():
        return case
    rows = changed.view(-1, changed.shape[-1])
    for _ in range(TRIES):
        row, (one, other) = rows[rng.randrange(len(rows))], two_places(changed.shape[-1], rng)
        if row[one].item() != row[other].item():
            row[[one, other]] = row[[other, one]]
            break
    else:
        _swap_with_the_first(rows[rng.randrange(len(rows))])
    return _with_input(case, position, changed)


def _swap_with_the_first(row: torch.Tensor) -> None:
    """In a row of a few numbers, as groups' sizes are, the places between the ends may all hold the same."""
    others = (row != row[0]).nonzero()
    if len(others):
        other = int(others[0])
        row[[0, other]] = row[[other, 0]]


def with_low_bits(case: Case, places: Iterable[int]) -> Case:
    """Draw the low bits of these operands' floats anew; the ends of their ranges stay."""
    import torch

    generator = torch.Generator().manual_seed(case.seed)
    for place in places:
        whole = case.inputs[place]
        mask = LOW_BITS.get(whole.itemsize, 0)
        if mask and whole.numel():
            bits = whole.view(torch.int32 if whole.itemsize == 4 else torch.int16)
            fresh = torch.randint(mask + 1, bits.shape, generator=generator).to(bits.dtype)
            changed = ((bits & ~mask) | fresh).view(whole.dtype)
            case = _with_input(case, place, changed.clamp(whole.min(), whole.max()))
    return case


def _floats(kernel: LoadedKernel) -> list[int]:
    return [place for place, spec in enumerate(kernel.operation.inputs) if spec.follows_kind]


def _columns(kernel: LoadedKernel, case: Case) -> Case:
    """Swap two columns of every operand with rows: sums, norms and extremes of rows stay as they were."""
    rng = kernel.rng
    for place in _with_rows(kernel):
        changed = case.inputs[place].clone()
        if changed.shape[-1] >= 2:
            one, other = two_places(changed.shape[-1], rng)
            changed[..., [one, other]] = changed[..., [other, one]]
        case = _with_input(case, place, changed)
    return case


def two_places(width: int, rng: Seeded) -> tuple[int, int]:
    """Two of at least two places in a row, by lot; where there are enough others, the ends stay as they were."""
    first, count = (1, width - 2) if width >= 4 else (0, width)
    apart = 2 ** rng.randrange((count - 1).bit_length() or 1)
    one = first + rng.randrange(count - apart)
    return one, one + apart


def _with_rows(kernel: LoadedKernel) -> list[int]:
    return [place for place, spec in enumerate(kernel.operation.inputs) if kernel.operation.row_axis in spec.axes]


def _with_input(case: Case, place: int, changed: torch.Tensor) -> Case:
    return dataclasses.replace(case, inputs=(*case.inputs[:place], changed, *case.inputs[place + 1 :]))


def _weight(kernel: LoadedKernel, case: Case) -> Case:
    inputs = tuple(
        tensor if kernel.operation.row_axis in spec.axes or not spec.follows_kind else -tensor.flip(-1)
        for spec, tensor in zip(kernel.operation.inputs, case.inputs, strict=True)
    )
    return dataclasses.replace(case, inputs=inputs)


def _scalar(case: Case) -> Case:
    return dataclasses.replace(case, scalars=tuple(0.125 + 1000 * value for value in case.scalars))


REPLAY = Gate(name="replay", examine=examine, runs_early=True)
