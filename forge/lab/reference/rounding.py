"""Measures how rounding its operands changes a reference's answer: the error that even the best kernel may make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM
from forge.lab.reference.allowed_error import ROUNDINGS
from forge.lab.reference.answers import Answers, rms
from forge.lab.reference.tied import tied
from forge.operations.operation import Exact, Expectation, Expected
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

ONE_ROUNDING = 2.0**-24
"""Relative size of one rounding of an fp32 operand, up or down."""
ROUNDINGS_BEFORE = 3
"""Number of roundings that a kernel may make before a step that magnifies them. Such a step is exp2 of a product with
a rounded constant."""
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
OTHERS_SHARE, OTHERS_SHARE_OF_16_BITS = 0.01, 0.1
"""Share of the integers of a result that may be those of nearby operands, at most. Chosen: of bf16 numbers that are
drawn at random, one pair in a hundred ties for each value that they are compared with."""
ROUNDING_PART, SMOOTH_RATIO = 2.0**-4, 2.0**-2
"""Part of one rounding by which operands are moved. An element follows its operands if this changes it by at most the
ratio times a full rounding's change. An element that jumps, as after a comparison with a number, isn't magnified."""
Tensors = tuple["torch.Tensor", ...]


def one_rounding_off(
    tensor: torch.Tensor, draw: int = 0, part: float = 1.0, *, by_value: bool = False
) -> torch.Tensor:
    """Return floats in fp64, each moved up or down by one rounding at random; with `by_value` equal ones alike.

    A random choice has no period that could match a shape's.

    `part` is a share of a rounding, up to 1. Sizes stay.
    """
    import torch

    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator().manual_seed(tensor.numel() + draw)
    if by_value:
        distinct, which = tensor.cpu().unique(return_inverse=True)
        up = torch.randint(2, distinct.shape, generator=generator).double()[which]
    else:
        up = torch.randint(2, tensor.shape, generator=generator).double()
    return tensor.double().cpu() * (1 + (2 * up - 1) * (part * ONE_ROUNDING))


def nearby(
    answers: Answers,
    inputs: Tensors,
    shape: Mapping[str, int],
    *,
    draws: int = 1,
    part: float = 1.0,
    by_value: bool = False,
) -> Iterator[Tensors | Refused]:
    """Yield the reference's fp64 answers for operands that are one rounding off, or a part of one.

    `part` is a share of a rounding, up to 1.
    """
    for draw in range(draws):
        moved = tuple(one_rounding_off(one, draw, part, by_value=by_value) for one in inputs)
        yield answers.asked("module_fp64", moved, shape)


def widened(
    expected: Sequence[Expected], answers: Answers, inputs: Tensors, shape: Mapping[str, int], policy: Policy
) -> tuple[Expected, ...]:
    """Return the rules at these values, with each element allowed the change from rounded operands as well.

    An integer may have any of the values that it has for operands `ROUNDINGS_OF_A_SUM` roundings away. Indices that
    equal numbers share may be any of them. This is used
    if an answer is beyond the bound that was measured at other values. Floats are allowed more in fp32 only: in other
    types the result's own rounding is larger. An error as large as half precision's is never allowed.
    """
    contract = answers.contract
    if not contract.wide:
        return tuple(expected)
    ties = _ties(expected, answers, inputs, shape)
    whole = tuple(
        replace(
            rule,
            others=tuple(one[place].to(rule.value.device) for one in ties),
            others_share=OTHERS_SHARE if contract.dtype == "fp32" else OTHERS_SHARE_OF_16_BITS,
            tied=tied(rule.value, place, answers, inputs, shape),
        )
        if isinstance(rule, Exact)
        else rule
        for place, rule in enumerate(expected)
    )
    if contract.dtype != "fp32" or all(isinstance(rule, Exact) for rule in expected):
        return whole
    coarse, fine = (
        [
            one
            for one in nearby(answers, inputs, shape, draws=ROUNDED_DRAWS, part=part)
            if not isinstance(one, Refused)
        ]
        for part in (1.0, ROUNDING_PART)
    )
    return tuple(
        _widened_rule(rule, [one[place] for one in coarse], [one[place] for one in fine], policy)
        for place, rule in enumerate(whole)
    )


def magnifies_too_much(
    exacts: Sequence[torch.Tensor], answers: Answers, inputs: Tensors, shape: Mapping[str, int], *, by_value: bool
) -> bool:
    """Return whether rounding the operands may change a result by more than is ever allowed: no kernel can answer.

    An example is the normalisation of equal values. Their mean is a rounding off in most kernels, and nothing else is
    left to be normalised. With `by_value` equal numbers are rounded alike.

    `exacts` are the results in fp64, in the order of the reference.
    """
    contract = answers.contract
    if not (contract.wide and contract.dtype == "fp32"):
        return False
    beside = [next(nearby(answers, inputs, shape, part=part, by_value=by_value)) for part in (1.0, ROUNDING_PART)]
    coarse, fine = ([] if isinstance(one, Refused) else [one] for one in beside)
    return any(
        bool((_magnified(exact, [one[place] for one in coarse], [one[place] for one in fine]) > _most(exact)).any())
        for place, exact in enumerate(exacts)
        if exact.is_floating_point()
    )


def _ties(expected: Sequence[Expected], answers: Answers, inputs: Tensors, shape: Mapping[str, int]) -> list[Tensors]:
    """Return the answers from which an integer may be taken; none if no result has integers."""
    if not any(isinstance(rule, Exact) for rule in expected):
        return []
    of_the_type = ROUNDINGS * UNIT_ROUNDOFF[answers.contract.dtype] / ONE_ROUNDING
    asked = nearby(answers, inputs, shape, draws=TIED_DRAWS, part=max(ROUNDINGS_OF_A_SUM, of_the_type))
    return [one for one in asked if not isinstance(one, Refused)]


def _widened_rule(
    rule: Expected, coarse: Sequence[torch.Tensor], fine: Sequence[torch.Tensor], policy: Policy
) -> Expected:
    if not isinstance(rule, Expectation):
        return rule
    unit = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * (1 + ROUNDINGS_BESIDE_SUM)
    allowed = _magnified(rule.value, coarse, fine).clamp(max=_most(rule.value))
    return replace(rule, scale=rule.scale + allowed / unit)


def _magnified(value: torch.Tensor, coarse: Sequence[torch.Tensor], fine: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return what each element may change by a few roundings of the operands; zero where it jumps."""
    change, smaller_change = (_largest_change(value, beside) for beside in (coarse, fine))
    return ROUNDINGS_BEFORE * change.where(smaller_change <= SMOOTH_RATIO * change, 0.0)


def _most(value: torch.Tensor) -> float:
    return MOST_MAGNIFIED_ERROR * rms(value)


def _largest_change(value: torch.Tensor, beside: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the largest change of each element."""
    farthest = value.new_zeros(value.shape)
    for one in beside:
        farthest = farthest.maximum((one.to(value.device) - value).abs().nan_to_num(nan=0.0))
    return farthest
