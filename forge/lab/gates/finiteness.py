"""Asks a reference file's candidates for finite answers at values at which the reference errs too much to judge by.

A softmax without its maximum, or a sigmoid as a quotient of powers of e, gives NaN there. Other answers may be far
from the reference's: rounding decides about them.
"""

from __future__ import annotations

from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.refusal import wrong_output
from forge.lab.finding import Failed
from forge.lab.judge import judge
from forge.lab.observed import Observed
from forge.operations.operation import Expectation

DRAWS = 2
"""Number of draws of each kind. Chosen; each costs a call, and one of the reference."""


def ask(kernel: LoadedKernel) -> int | Failed:
    """Ask each such kind at the public shape; return the number of kinds."""
    kinds = kernel.definition.finite_kinds
    for kind in kinds * DRAWS:
        failed = _ask(kernel, kind)
        if failed is not None:
            return failed
    return len(kinds)


def _ask(kernel: LoadedKernel, kind: InputKind) -> Failed | None:
    kernel.tuner.choose_at_random(kernel.rng)
    observed = kernel.call([kernel.case(kernel.shape, kind)])
    return observed if isinstance(observed, Failed) else _not_finite(kernel, observed[0])


def _not_finite(kernel: LoadedKernel, observed: Observed) -> Failed | None:
    """Return the refusal of an output with NaN or infinity where the reference has neither.

    The right numbers stand for the finite ones.
    """
    rules, baselines = kernel.expected(observed.case)
    given = zip(kernel.operation.outputs, observed.outputs, rules, baselines, strict=True)
    for spec, got, rule, baseline in given:
        if not (isinstance(rule, Expectation) and rule.value.numel()):
            continue
        judged_as = rule.value.to(got.dtype).where(got.isfinite(), got)
        judged = judge(judged_as, rule, baseline, dtype=spec.rounded_to(kernel.dtype), policy=kernel.policy)
        if not judged.within:
            return wrong_output(kernel.operation, kernel.dtype, kernel.entry, observed.case, spec.name, judged)
    return None
