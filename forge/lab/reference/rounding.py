"""What rounding operands makes of a reference's answer: the error that the best of kernels may make on its way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forge.domain.operation import Expectation, Expected
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF
from forge.lab.judge.elementwise import BESIDE_THE_SUM
from forge.lab.reference.answers import Answers, rms
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

ONE_ROUNDING = 2.0**-24
"""Of operands in fp32, up or down."""
ROUNDINGS_BEFORE = 3
"""That a kernel may make before what magnifies them, as exp2 of a product with a rounded constant does."""
MOST_MAGNIFIED = 2.0**-15
"""Of the root mean square: beyond, half precision would do."""
TURNS = 4
"""Of operands rounded by chance: one alone may leave an element where it is."""
FINER, SMOOTH = 2.0**-4, 2.0**-2
"""A part of a rounding, and how much less it moves at most what follows its operands: an element that jumps, as where
an operand is compared with a number, isn't magnified."""
Tensors = tuple["torch.Tensor", ...]


def one_rounding_off(tensor: torch.Tensor, turn: int = 0, part: float = 1.0) -> torch.Tensor:
    """Floats in fp64, each of them up or down by one rounding; by turns that no period of a shape meets."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator().manual_seed(tensor.numel() + turn)
    up = torch.randint(2, tensor.shape, generator=generator).double()
    return tensor.double().cpu() * (1 + (2 * up - 1) * (part * ONE_ROUNDING))


def nearby(
    answers: Answers, inputs: Tensors, batch: int, *, turns: int = 1, part: float = 1.0
) -> Iterator[Tensors | Refused]:
    """What the reference answers in fp64 where every operand is one rounding off, or a part of one."""
    for turn in range(turns):
        yield answers.asked("module_fp64", tuple(one_rounding_off(one, turn, part) for one in inputs), batch)


def widened(
    expected: Sequence[Expected], answers: Answers, inputs: Tensors, batch: int, policy: Policy
) -> tuple[Expected, ...]:
    """The rules at these values, each element allowed what rounding operands moves it by as well.

    Asked where an answer is beyond the bound that was measured at other values, in fp32 alone: elsewhere the result's
    own rounding is larger. As much as half precision errs by is never allowed.
    """
    contract = answers.contract
    if not (contract.wide and contract.dtype == "fp32"):
        return tuple(expected)
    coarse, fine = (
        [one for one in nearby(answers, inputs, batch, turns=TURNS, part=part) if not isinstance(one, Refused)]
        for part in (1.0, FINER)
    )
    return tuple(
        _wider(rule, [one[place] for one in coarse], [one[place] for one in fine], policy)
        for place, rule in enumerate(expected)
    )


def _wider(rule: Expected, coarse: Sequence[torch.Tensor], fine: Sequence[torch.Tensor], policy: Policy) -> Expected:
    if not isinstance(rule, Expectation):
        return rule
    moved, by_less = (_moved(rule.value, beside) for beside in (coarse, fine))
    moved = moved.where(by_less <= SMOOTH * moved, 0.0)
    unit = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * (1 + BESIDE_THE_SUM)
    allowed = (ROUNDINGS_BEFORE * moved).clamp(max=MOST_MAGNIFIED * rms(rule.value))
    return replace(rule, scale=rule.scale + allowed / unit)


def _moved(value: torch.Tensor, beside: Sequence[torch.Tensor]) -> torch.Tensor:
    """The farthest that each element was moved."""
    farthest = value.new_zeros(value.shape)
    for one in beside:
        farthest = farthest.maximum((one.to(value.device) - value).abs().nan_to_num(nan=0.0))
    return farthest
