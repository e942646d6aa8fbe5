"""Surveys what a file's get_inputs() draws, under hundreds of seeds and at the ends of its ranges.

Two draws of a range of integers miss its ends nearly always, and a kernel that is wrong there would be accepted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forge.domain.input_kind import END_KINDS
from forge.domain.own_operation import Contract
from forge.lab.reference.answers import Answers
from forge.lab.reference.reference_guest import Tensors
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

MOST_DRAWS, FEWEST_DRAWS = 256, 16
"""Number of seeds under which get_inputs() draws, at most and at least. Tensors of floats that each have thousands of
values get the fewest."""
LARGE_DRAWS = 3
"""Number of seeds if each argument is a large tensor of floats: one draw of such a tensor shows its distribution."""
SURVEY_BYTES = 2**30
"""Size of all draws of a survey in bytes, at most, unless the fewest draws are larger. One gibibyte takes seconds."""
END_DRAWS = 4
"""Number of draws in each pattern of ends, since each plants them at other places."""
KEPT_ELEMENTS = 2**14
"""Number of elements up to which a tensor is kept from every draw; of a larger one two draws are kept. Chosen; up to
thousands of draws stay in memory."""
MOST_SAMPLED = 2**20
"""Number of values from all draws that a distribution is inferred from, at most. They take 8 MiB in fp64. Chosen;
more values cost sorting time, and tell the ends of a range more sharply."""


@dataclass
class Seen:
    """Values of one operand over all draws."""

    whole: list[torch.Tensor] = field(default_factory=list)
    """Draws that are kept whole, in the order of their seeds."""
    sampled: list[torch.Tensor] = field(default_factory=list)
    low: float = 0
    """Smallest value. Whole numbers stay whole; `high` is the largest."""
    high: float = 0
    varies: bool = False
    """True if two draws differ."""
    reaches: bool = False
    """True if the values follow torch's random numbers to the ends of their ranges."""
    draws: int = 0

    def take(self, drawn: torch.Tensor, *, most_sampled: int) -> None:
        """Note one plain draw; of its elements `most_sampled` are kept as a sample."""
        if self.whole:
            self.varies = self.varies or bool((drawn != self.whole[0]).any())
        if drawn.numel() <= KEPT_ELEMENTS or len(self.whole) < 2:
            self.whole.append(drawn)
        self.sampled.append(drawn.reshape(-1)[:most_sampled])
        self._widen(drawn)
        self.draws += 1

    def take_end(self, drawn: torch.Tensor, plain: torch.Tensor) -> None:
        """Note a draw that reaches for the ends, beside the plain draw of the same seed and the same sizes."""
        changed = bool((drawn != plain).any())
        self.reaches = self.reaches or changed
        self.varies = self.varies or changed
        self._widen(drawn)

    def _widen(self, drawn: torch.Tensor) -> None:
        if not drawn.numel():
            return
        low, high = drawn.min().item(), drawn.max().item()
        self.low = low if not self.draws else min(self.low, low)
        self.high = high if not self.draws else max(self.high, high)


def survey(answers: Answers, seed: int) -> tuple[Seen, ...] | Refused:
    """Return what get_inputs() draws for each tensor argument, or why it gives other forms when called again."""
    contract = answers.contract
    draws, end_draws = _draws(contract)
    seen = tuple(Seen() for _ in contract.tensors)
    first: list[Tensors] = []
    for place in range(draws):
        drawn = answers.try_generated(seed + place)
        if isinstance(drawn, Refused):
            return drawn
        first += [drawn] if place < end_draws else []
        for one, tensor in zip(seen, drawn, strict=True):
            one.take(tensor, most_sampled=max(1, MOST_SAMPLED // draws))
    for pattern in END_KINDS:
        for place, plain in enumerate(first):
            reached = answers.try_generated(seed + place, pattern)
            if not isinstance(reached, Refused):
                for one, tensor, usual in zip(seen, reached, plain, strict=True):
                    one.take_end(tensor, usual)
    return seen


def _draws(contract: Contract) -> tuple[int, int]:
    """Return the number of plain draws, and of draws in each pattern of ends."""
    operand_bytes = sum(contract.bytes_of(one.element, one.sizes) for one in contract.tensors)
    fewest = min(math.prod(one.sizes) if one.element is None else 0 for one in contract.tensors)
    if fewest > MOST_SAMPLED:
        return LARGE_DRAWS, 1
    if fewest > KEPT_ELEMENTS:
        return FEWEST_DRAWS, END_DRAWS
    return max(FEWEST_DRAWS, min(MOST_DRAWS, SURVEY_BYTES // max(1, operand_bytes))), END_DRAWS


def related(one: Seen, other: Seen) -> bool:
    """Return True if the values of two arguments fit to each other in every draw, as starts and ends do.

    Whole numbers are related if one is never above the other although their ranges overlap. They are also related if
    one is a sum or a bound of each row of the other.
    """
    if len(one.whole) != one.draws or len(other.whole) != other.draws:
        return False
    pairs = list(zip(one.whole, other.whole, strict=True))
    if any(tensor.is_floating_point() for tensor in pairs[0]) or not (one.varies and other.varies):
        return False
    if pairs[0][0].shape == pairs[0][1].shape:
        return _ordered(pairs, one, other)
    if pairs[0][0].dim() > pairs[0][1].dim():
        return related(other, one)
    return pairs[0][1].shape[:-1] == pairs[0][0].shape and _bounds_rows(pairs, one, other)


def _ordered(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], one: Seen, other: Seen) -> bool:
    never_above = one.high > other.low and all(bool((a.long() <= b.long()).all()) for a, b in pairs)
    never_below = other.high > one.low and all(bool((a.long() >= b.long()).all()) for a, b in pairs)
    return _numbers(pairs) >= FEWEST_PAIRS and (never_above or never_below)


def _bounds_rows(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], one: Seen, other: Seen) -> bool:
    rows = [(a.long(), b.long()) for a, b in pairs if b.shape[-1]]
    summed = all(bool((a == b.sum(-1)).all()) for a, b in rows)
    bounded = other.high > one.low and all(bool((b.amax(-1) <= a).all()) for a, b in rows)
    return _numbers(pairs) >= FEWEST_PAIRS and (summed or bounded)


FEWEST_PAIRS = 64
"""Number of pairs of values from which on a relation between two arguments isn't taken for chance. One that holds by
chance in half of the pairs holds in all with 2^-64."""


def _numbers(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> int:
    return sum(a.numel() for a, _ in pairs)
