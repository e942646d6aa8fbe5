"""Defines what a gate returns: it passed, or it failed for a reason."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never

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
class NotAsked:
    """The gate's question can't be put to this candidate, or not on this machine."""

    observed: str
    """Reason why."""
    threshold: str


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
    raised: bool = False
    """Whether the call ended with an exception, so that the process goes on."""


Finding = Passed | NotAsked | Failed


def result(gate_name: str, finding: Finding) -> GateResult:
    """Return the finding in its recorded form."""
    match finding:
        case Passed():
            return _result(gate_name, "passed", finding.observed, finding.threshold)
        case NotAsked():
            return _result(gate_name, "not asked", finding.observed, finding.threshold)
        case Failed():
            return _result(gate_name, "failed", finding.observed, finding.threshold)
        case _:
            assert_never(finding)


def _result(
    name: str, verdict: Literal["passed", "failed", "not asked"], observed: str, threshold: str
) -> GateResult:
    return GateResult(name=name, verdict=verdict, observed=observed, threshold=threshold)
