"""Defines what a gate returns: it passed, or it failed for a reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    calls: int = 0
    """Number of calls, if the gate says it."""


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


def joined(findings: Sequence[Finding]) -> Finding:
    """Return what the parts of a question found as one finding: the first refusal, or all that was seen."""
    passed = [one for one in findings if isinstance(one, Passed)]
    refused = next((one for one in findings if isinstance(one, Failed)), None)
    if refused is not None or not passed:
        return refused or findings[0]
    return replace(
        passed[0],
        observed="; ".join(dict.fromkeys(one.observed for one in passed)),
        errors=tuple(error for one in passed for error in one.errors),
        calls=sum(one.calls for one in passed),
    )


def result(gate_name: str, finding: Finding) -> GateResult:
    """Return the finding in its recorded form."""
    match finding:
        case Passed():
            counted = f"{finding.calls} calls, " if finding.calls else ""
            return _result(gate_name, "passed", f"{counted}{finding.observed}", finding.threshold)
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
