"""Finds the indices of an answer that equal numbers share, where the reference has no rule which comes first.

The indices of the four largest numbers in a row of zeros may be any four. torch.topk and torch.sort say so, and each
kernel has its own order. An index that is alone in its row is another matter: torch.argmax promises the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from forge.lab.reference.answers import Answers
from forge.operations.operation import Tied
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

STIRRED_DRAWS = 32
"""Number of draws in which equal numbers are moved apart at random. Two that tie keep their order in all of them with
a chance of 2^-32."""
STIRRED = 2.0**-28
"""Largest distance that a number is moved, as a share of the operand's largest number: a sixteenth of fp32's
rounding. Equal numbers then no longer tie, and other numbers keep their order. Chosen."""
STIRRED_ZEROS = 2.0**-10
"""Largest distance that a number is moved in an operand of zeros alone. Chosen; the product of two such moves is
2^-20, which still changes a result near 1."""
Tensors = tuple["torch.Tensor", ...]


def tied(value: torch.Tensor, place: int, answers: Answers, inputs: Tensors, shape: Mapping[str, int]) -> Tied | None:
    """Return which indices of one result equal numbers share; None if there are none, or the reference has a rule.

    Results count as indices if they differ along an axis in every answer. A count or the outcome of a comparison
    doesn't. A reference has a rule if the first, or the last, of all equal numbers has its index there.

    `value` is the result at `place` among the results of the reference, with any sizes.
    """
    import torch

    if value.dtype not in (torch.int32, torch.int64) or value.dim() == 0:
        return None
    ramps = _asked(answers, [tuple(_ramp(one, side) for one in inputs) for side in (1, -1)], shape, place)
    drawn = (tuple(_stirred(one, draw) for one in inputs) for draw in range(STIRRED_DRAWS))
    stirred = _asked(answers, drawn, shape, place)
    seen = torch.stack([value.cpu(), *ramps, *stirred])
    apart = next((axis for axis in range(value.dim()) if _differ_along(seen, axis + 1)), None)
    where = (seen != seen[0]).any(0)
    if apart is None or not bool(where.any()) or any(torch.equal(one[where], seen[0][where]) for one in ramps):
        return None
    numbers = tuple(one.to(value.device) for one in inputs if _are_pointed_to(one.cpu(), seen, apart))
    return Tied(where=where.to(value.device), apart=apart, low=int(seen.min()), high=int(seen.max()), numbers=numbers)


def _are_pointed_to(numbers: torch.Tensor, seen: torch.Tensor, apart: int) -> bool:
    """Return whether all answers point to the same numbers: the answers differ only where these are equal."""
    import torch

    places = list(numbers.shape)
    if not numbers.is_floating_point() or len(places) != seen.dim() - 1:
        return False
    width, places[apart] = places[apart], seen.shape[apart + 1]
    if tuple(places) != seen.shape[1:] or bool(((seen < 0) | (seen >= width)).any()):
        return False
    picked = [numbers.gather(apart, one.long()) for one in seen]
    return all(torch.equal(one, picked[0]) for one in picked)


def _asked(answers: Answers, cases: Iterable[Tensors], shape: Mapping[str, int], place: int) -> list[torch.Tensor]:
    found = (answers.asked("module_fp64", case, shape) for case in cases)
    return [one[place].cpu() for one in found if not isinstance(one, Refused)]


def _differ_along(numbers: torch.Tensor, axis: int) -> bool:
    return numbers.shape[axis] > 1 and bool((numbers.sort(axis).values.diff(dim=axis) != 0).all())


def _move(tensor: torch.Tensor) -> float:
    """Return how far numbers are moved, at most."""
    largest = float(tensor.abs().max()) if tensor.numel() else 0.0
    return STIRRED * largest or STIRRED_ZEROS


def _stirred(tensor: torch.Tensor, draw: int) -> torch.Tensor:
    """Return floats in fp64, each moved up or down at random; zeros too."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    wide = tensor.double().cpu()
    generator = torch.Generator().manual_seed(tensor.numel() + draw)
    moves = 2 * torch.rand(wide.shape, generator=generator, dtype=torch.float64) - 1
    return wide + moves * _move(wide)


def _ramp(tensor: torch.Tensor, side: int) -> torch.Tensor:
    """Return floats in fp64 that rise or fall a little from place to place, so that equal numbers are in order."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    wide = tensor.double().cpu()
    steps = torch.arange(wide.numel(), dtype=torch.float64).reshape(wide.shape) / max(1, wide.numel())
    return wide + side * steps * _move(wide)
