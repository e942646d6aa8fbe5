"""Allows what intermediate results err by where they cancel, and the result is small though its operands aren't.

One minus the mean of cosines near one is an example. Each cosine is rounded by its own size, whether the reference
subtracts before its mean or after it. Rounding operands doesn't show this: a cosine near one hardly moves with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF
from forge.lab.judge.elementwise import ROUNDINGS_BESIDE_SUM
from forge.lab.reference.answers import Answers, rms
from forge.lab.reference.drawing import Drawing
from forge.lab.reference.rounding import MOST_MAGNIFIED_ERROR
from forge.operations.operation import Expectation, Expected
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

MOST_DEGREE = 4
"""Degree of a polynomial up to which small operands explain a small result. A variance of squares has degree 4."""
CANCELLED = 0.25
"""Size of a result, over the size that its operands explain, below which something cancelled. Chosen; the root mean
squares of two draws of a few rows differ by less."""
LEAST_SHARE = 2.0**-2
"""Share of the error at the file's own values that a kernel needs where something cancelled. It is two roundings of
the eight that count at least."""
Tensors = tuple["torch.Tensor", ...]
_usual_sizes: WeakKeyDictionary[Answers, tuple[list[float], list[float]]] = WeakKeyDictionary()


def with_cancelled(
    rules: Sequence[Expected], wide: Sequence[Expected], answers: Answers, inputs: Tensors, policy: Policy
) -> tuple[Expected, ...]:
    """Return the wide rules; where a result is smaller by cancellation, with its usual error beside the narrow ones'.

    That is an eighth of what each element is allowed at the file's own values. It is used for fp32 only. It is no
    more than half precision would err, unless the result is smaller than that error and so nothing but rounding.
    """
    unit = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * (1 + ROUNDINGS_BESIDE_SUM)
    errors = _errors_where_cancelled([rule.value for rule in rules], answers, inputs)

    def widest(rule: Expected, wider: Expected, error: float) -> Expected:
        if not (isinstance(rule, Expectation) and isinstance(wider, Expectation)):
            return wider
        allowed = error if rms(rule.value) <= error else min(error, _most(rule.value))
        return replace(wider, scale=wider.scale.maximum(rule.scale + allowed / unit))

    return tuple(map(widest, rules, wide, errors))


def cancels_too_much(exacts: Sequence[torch.Tensor], answers: Answers, inputs: Tensors) -> bool:
    """Return whether so little of a result is left that no kernel can be held to it: half precision would do.

    `exacts` are the results in fp64, in the order of the reference.
    """
    errors = _errors_where_cancelled(exacts, answers, inputs)
    return any(LEAST_SHARE * error > _most(exact) for exact, error in zip(exacts, errors, strict=True))


def _most(value: torch.Tensor) -> float:
    return MOST_MAGNIFIED_ERROR * rms(value)


def _errors_where_cancelled(exacts: Sequence[torch.Tensor], answers: Answers, inputs: Tensors) -> list[float]:
    """Return each result's error at the file's own values; 0 where nothing cancelled, and for other types."""
    contract = answers.contract
    none = [0.0] * len(exacts)
    if not (contract.wide and contract.dtype == "fp32"):
        return none
    usual = usual_sizes(answers)
    if usual is None:
        return none
    own, results = usual
    explained = _explained(answers, inputs, own)
    return [
        result.error * there if result.element is None and rms(here) < CANCELLED * explained * there else 0.0
        for result, here, there in zip(contract.results, exacts, results, strict=True)
    ]


def usual_sizes(answers: Answers) -> tuple[list[float], list[float]] | None:
    """Return the sizes of the file's own values and of their results, asked once; None if it doesn't answer."""
    if answers not in _usual_sizes:
        contract = answers.contract
        own = Drawing(answers)(contract.shape, "normal", contract.seed)
        found = answers.asked("module_fp64", own, contract.shape)
        if isinstance(found, Refused):
            return None
        _usual_sizes[answers] = [rms(one) for one in own], [rms(one) for one in found]
    return _usual_sizes[answers]


def _explained(answers: Answers, inputs: Tensors, own: Sequence[float]) -> float:
    """Return the share of its usual size that a result has at least, if the sizes of its operands explain it."""
    sizes = [
        rms(here) / max(there, 2.0**-126)
        for one, here, there in zip(answers.contract.tensors, inputs, own, strict=False)
        if one.continuous
    ]
    return min([1.0, *sizes]) ** MOST_DEGREE
