"""Measures how rounding its operands changes a reference's answer: the error that even the best kernel may make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM
from forge.lab.reference.answers import Answers, rms
from forge.operations.operation import Exact, Expectation, Expected
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

ONE_ROUNDING = 2.0**-24
"""Relative size of one rounding of an fp32 operand, up or down."""
ROUNDINGS_BEFORE = 3
"""Number of roundings that a kernel may make before a step that magnifies them, as exp2 of a product with a rounded
constant does."""
MOST_MAGNIFIED_ERROR = 2.0**-15
"""Error relative to the root mean square that is allowed, at most; with more, half precision would be accepted."""
ROUNDED_DRAWS = 4
"""Number of draws of randomly rounded operands, since one alone may leave an element unchanged."""
ROUNDINGS_OF_A_SUM = 16
"""Number of roundings of the operands whose change hides what a long sum rounds. A sum of n products, added in turn
in fp32, errs as 0.15 sqrt(n) roundings of its operands do: 9 for 4,096 products."""
TIED_DRAWS = 16
"""Number of draws for integers. One draw swaps two numbers that nearly tie with a chance of up to a half. So
sixteen draws show nearly all pairs that a kernel's own rounding may swap."""
ROUNDING_PART, SMOOTH_RATIO = 2.0**-4, 2.0**-2
"""Part of a rounding, and the largest ratio of its change to a full rounding's change in an element that follows its
operands. An element that jumps, as after a comparison with a number, isn't magnified."""
Tensors = tuple["torch.Tensor", ...]


def one_rounding_off(tensor: torch.Tensor, draw: int = 0, part: float = 1.0) -> torch.Tensor:
    """Return floats in fp64, each moved up or down by one rounding at random.

    A random choice has no period that could match a shape's.
    """
    import torch

    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator().manual_seed(tensor.numel() + draw)
    up = torch.randint(2, tensor.shape, generator=generator).double()
    return tensor.double().cpu() * (1 + (2 * up - 1) * (part * ONE_ROUNDING))


def nearby(
    answers: Answers, inputs: Tensors, shape: Mapping[str, int], *, draws: int = 1, part: float = 1.0
) -> Iterator[Tensors | Refused]:
    """Yield the reference's fp64 answers for operands that are one rounding off, or a part of one."""
    for draw in range(draws):
        yield answers.asked("module_fp64", tuple(one_rounding_off(one, draw, part) for one in inputs), shape)


def widened(
    expected: Sequence[Expected], answers: Answers, inputs: Tensors, shape: Mapping[str, int], policy: Policy
) -> tuple[Expected, ...]:
    """Return the rules at these values, with each element allowed the change from rounded operands as well.

    An integer may have any of the values that it has for operands `ROUNDINGS_OF_A_SUM` roundings away. This is used
    if an answer is beyond the bound that was measured at other values. It is used in fp32 only: in other types the
    result's own rounding is larger. An error as large as half precision's is never allowed.
    """
    contract = answers.contract
    if not (contract.wide and contract.dtype == "fp32"):
        return tuple(expected)
    coarse, fine = (
        [
            one
            for one in nearby(answers, inputs, shape, draws=ROUNDED_DRAWS, part=part)
            if not isinstance(one, Refused)
        ]
        for part in (1.0, ROUNDING_PART)
    )
    ties = _ties(expected, answers, inputs, shape)
    return tuple(
        replace(rule, others=tuple(one[place].to(rule.value.device) for one in ties))
        if isinstance(rule, Exact)
        else _widened_rule(rule, [one[place] for one in coarse], [one[place] for one in fine], policy)
        for place, rule in enumerate(expected)
    )


def _ties(expected: Sequence[Expected], answers: Answers, inputs: Tensors, shape: Mapping[str, int]) -> list[Tensors]:
    """Return the answers from which an integer may be taken; none if no result has integers."""
    if not any(isinstance(rule, Exact) for rule in expected):
        return []
    asked = nearby(answers, inputs, shape, draws=TIED_DRAWS, part=ROUNDINGS_OF_A_SUM)
    return [one for one in asked if not isinstance(one, Refused)]


def _widened_rule(
    rule: Expected, coarse: Sequence[torch.Tensor], fine: Sequence[torch.Tensor], policy: Policy
) -> Expected:
    if not isinstance(rule, Expectation):
        return rule
    change, smaller_change = (_largest_change(rule.value, beside) for beside in (coarse, fine))
    change = change.where(smaller_change <= SMOOTH_RATIO * change, 0.0)
    unit = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * (1 + ROUNDINGS_BESIDE_SUM)
    allowed = (ROUNDINGS_BEFORE * change).clamp(max=MOST_MAGNIFIED_ERROR * rms(rule.value))
    return replace(rule, scale=rule.scale + allowed / unit)


def _largest_change(value: torch.Tensor, beside: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the largest change of each element."""
    farthest = value.new_zeros(value.shape)
    for one in beside:
        farthest = farthest.maximum((one.to(value.device) - value).abs().nan_to_num(nan=0.0))
    return farthest
