"""Defines what a gate returns: it passed, or it failed for a reason."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.domain.evidence import Counterexample, GateResult, WorkloadErrors
from forge.domain.verdict import Reason

if TYPE_CHECKING:
    from forge.lab.observed import Case


@dataclass(frozen=True, kw_only=True)
class Passed:
    """The gate saw nothing forbidden."""

    observed: str
    threshold: str
    errors: tuple[WorkloadErrors, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The gate saw something forbidden."""

    reason: Reason
    observed: str
    threshold: str
    counterexample: Counterexample | None = None
    case: "Case | None" = None
    """The call with the wrong answer, from which a smaller one is searched."""
    log: str = ""


Finding = Passed | Failed


def result(gate_name: str, finding: Finding) -> GateResult:
    """Return the finding in its recorded form."""
    return GateResult(
        name=gate_name,
        verdict="passed" if isinstance(finding, Passed) else "failed",
        observed=finding.observed,
        threshold=finding.threshold,
    )
