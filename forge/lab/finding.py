"""What a gate returns: it passed, or it failed for a reason."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.domain.evidence import Counterexample, GateResult, WorkloadErrors
from forge.domain.verdict import Reason

if TYPE_CHECKING:
    from forge.lab.observed import Case


@dataclass(frozen=True, kw_only=True)
class Passed:
    """The gate saw nothing that it forbids."""

    observed: str
    threshold: str
    errors: tuple[WorkloadErrors, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The gate saw what it forbids."""

    reason: Reason
    observed: str
    threshold: str
    counterexample: Counterexample | None = None
    case: "Case | None" = None
    """The call that was answered wrongly, so that a smaller one can be looked for."""
    log: str = ""


Finding = Passed | Failed


def result(gate_name: str, finding: Finding) -> GateResult:
    """The finding as it is recorded."""
    return GateResult(
        name=gate_name,
        verdict="passed" if isinstance(finding, Passed) else "failed",
        observed=finding.observed,
        threshold=finding.threshold,
    )
