"""Allows what intermediate results err by where they cancel, and the result is small though its operands aren't.

One minus the mean of cosines near one is an example. Each cosine is rounded by its own size, whether the reference
subtracts before its mean or after it. Rounding operands doesn't show this: a cosine near one hardly moves with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM
from forge.lab.reference.answers import Answers, rms
from forge.lab.reference.drawing import Drawing
from forge.operations.operation import Expectation, Expected
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

MOST_DEGREE = 4
"""Degree of a polynomial up to which small operands explain a small result. A variance of squares has degree 4."""
CANCELLED = 0.25
"""Size of a result, over the size that its operands explain, below which something cancelled. Chosen; the root mean
squares of two draws of a few rows differ by less."""
Tensors = tuple["torch.Tensor", ...]


def with_cancelled(
    rules: Sequence[Expected], answers: Answers, inputs: Tensors, policy: Policy
) -> tuple[Expected, ...]:
    """Return the rules, with the error measured at the file's own values where a result is smaller by cancellation.

    That is an eighth of what each element is allowed at those values. It is used for fp32 only.
    """
    contract = answers.contract
    if not (contract.wide and contract.dtype == "fp32") or not any(isinstance(one, Expectation) for one in rules):
        return tuple(rules)
    own = Drawing(answers)(contract.shape, "normal", contract.seed)
    usual = answers.asked("module_fp64", own, contract.shape)
    if isinstance(usual, Refused):
        return tuple(rules)
    explained = _explained(answers, inputs, own)
    unit = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * (1 + ROUNDINGS_BESIDE_SUM)
    return tuple(
        replace(rule, scale=rule.scale + result.error * rms(value) / unit)
        if isinstance(rule, Expectation) and rms(rule.value) < CANCELLED * explained * rms(value)
        else rule
        for rule, result, value in zip(rules, contract.results, usual, strict=True)
    )


def _explained(answers: Answers, inputs: Tensors, own: Tensors) -> float:
    """Return the share of its usual size that a result has at least, if the sizes of its operands explain it."""
    sizes = [
        rms(here) / max(rms(there), 2.0**-126)
        for one, here, there in zip(answers.contract.tensors, inputs, own, strict=False)
        if one.continuous
    ]
    return min([1.0, *sizes]) ** MOST_DEGREE
