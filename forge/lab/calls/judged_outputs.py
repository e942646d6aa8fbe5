"""Judges all outputs of one observed call, by the oracle's rules or by wider ones where rounding is magnified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.domain.evidence import WorkloadErrors
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.finding import Failed
from forge.lab.judge import SPECIAL_KINDS, JudgedOutput, judge_kind, plainly_together, plainly_within
from forge.lab.observed import Case, Observed
from forge.operations.operation import Expectation, Expected, Operation

if TYPE_CHECKING:
    import torch

Rules = tuple[Expected, ...]
Verdict = tuple[WorkloadErrors, Failed | None]
SLOWLY_JUDGED = SPECIAL_KINDS | {"integers"}
"""Kinds that no quick look can accept: NaN has a rule of its own, and sums of integers are exact."""


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


def all_plainly_right(
    operation: Operation, observed: Observed, rules: Rules, *, dtype: DType, policy: Policy
) -> bool:
    """Return whether a quick look, without the reference's own errors, suffices to accept a call.

    True here means that `judged_outputs` would accept each output too, since its bounds are at least as wide. That
    isn't so for the kinds in `SLOWLY_JUDGED`.
    """
    kind = observed.case.kind
    return all(
        isinstance(rule, Expectation)
        and plainly_within(got, rule, dtype=spec.rounded_to(dtype), policy=policy)
        and (kind != "normal" or plainly_together(got, rule))
        for spec, got, rule in zip(operation.outputs, observed.outputs, rules, strict=True)
    )


def errors_of(case: Case, results: list[JudgedOutput]) -> WorkloadErrors:
    """Return the largest errors of one call's outputs."""
    return WorkloadErrors(
        shape=dict(case.shape),
        inputs=case.kind,
        max_relative_error=max(one.max_relative_error for one in results),
        bound_used=min(max(one.bound_used for one in results), 1e300),
    )
