"""Judges all outputs of one observed call, by the oracle's rules or by wider ones where rounding is magnified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.domain.evidence import WorkloadErrors
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.finding import Failed
from forge.lab.judge import JudgedOutput, judge_kind
from forge.lab.observed import Case, Observed
from forge.operations.operation import Expected, Operation

if TYPE_CHECKING:
    import torch

Rules = tuple[Expected, ...]
Verdict = tuple[WorkloadErrors, Failed | None]


def judged_outputs(
    operation: Operation,
    observed: Observed,
    rules: Rules,
    baselines: tuple[torch.Tensor, ...],
    *,
    dtype: DType,
    policy: Policy,
) -> list[JudgedOutput]:
    """Return how each output is judged; `baselines` has a tensor of the same sizes for each.

    Wider rules are asked for only if an output breaks the oracle's.
    """

    def by(rules: Rules) -> list[JudgedOutput]:
        given = zip(operation.outputs, observed.outputs, rules, baselines, strict=True)
        return [
            judge_kind(
                got,
                rule,
                baseline,
                kind=observed.case.kind,
                specials=operation.specials,
                dtype=spec.rounded_to(dtype),
                policy=policy,
            )
            for spec, got, rule, baseline in given
        ]

    results = by(rules)
    if operation.reconsidered is None or all(one.within for one in results):
        return results
    return by(operation.reconsidered(rules, *observed.case.inputs))


def errors_of(case: Case, results: list[JudgedOutput]) -> WorkloadErrors:
    """Return the largest errors of one call's outputs."""
    return WorkloadErrors(
        shape=dict(case.shape),
        inputs=case.kind,
        max_relative_error=max(one.max_relative_error for one in results),
        bound_used=min(max(one.bound_used for one in results), 1e300),
    )
