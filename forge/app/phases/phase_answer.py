"""Says what a phase's event means as the answer of a command: a verdict, its reason, and what was seen."""

import orjson

from forge.app.runs.author_log import author_log
from forge.app.runs.benchmark_answer import further_shape, timed
from forge.app.runs.recorded_evidence import captured_environment, further_shapes_of
from forge.app.workspace import Workspace
from forge.domain.verdict import Reason
from forge.events import (
    BenchmarkErrored,
    BenchmarkFailed,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateSubmitted,
    CandidateVerified,
    Event,
    KernelPromoted,
    PromotionDenied,
    VerificationErrored,
)

Data = dict[str, object]


def phase_answer(event: Event, *, workspace: Workspace) -> Data:
    """Return the answer of the command whose phase recorded `event`, as data for a table or for JSON."""
    match event:
        case CandidateSubmitted():
            return {"verdict": "accepted", "candidate": event.candidate, "reason": None}
        case CandidateRejected():
            judged: Data = {"verdict": "rejected", "candidate": event.candidate, "simulated": event.simulated}
            judged["stage"] = event.stage
            shown: Data = {"counterexample": _counterexample(event, workspace)}
            by = _worker(event.env_sha256, workspace)
            return judged | _seen(event) | by | shown | _reported(event, workspace) | author_log(workspace, event)
        case CandidateVerified():
            passed: Data = {"verdict": "accepted", "candidate": event.candidate, "simulated": event.simulated}
            wall: Data = {"isolation": event.isolation.model_dump(mode="json")}
            wall |= _worker(event.env_sha256, workspace)
            return passed | _seen(event) | wall | _reported(event, workspace) | author_log(workspace, event)
        case BenchmarkRecorded() | BenchmarkFailed():
            by, times = _worker(event.env_sha256, workspace), timed(event.model_dump(mode="json"))
            return times | by | _further(event, workspace) | author_log(workspace, event)
        case VerificationErrored() | BenchmarkErrored():
            reason = {"code": "INFRASTRUCTURE", "message": event.detail}
            return {"verdict": "inconclusive", "candidate": event.candidate, "reason": reason}
        case KernelPromoted():
            return {"verdict": "accepted", "kernel_id": event.kernel_id, "reason": None} | _seen(event)
        case PromotionDenied():
            return {"verdict": "rejected", "kernel_id": None} | _seen(event)
        case _:
            raise AssertionError(f"{event.TYPE} is no phase's answer")


def _worker(env_sha256: str | None, workspace: Workspace) -> Data:
    """Return the name of the node whose answer this is; nothing for a refusal at submission."""
    return {} if env_sha256 is None else {"node": captured_environment(workspace, env_sha256).worker}


def _further(event: BenchmarkRecorded | BenchmarkFailed, workspace: Workspace) -> Data:
    """Return what was measured at the task's further shapes; nothing if there are none."""
    if not isinstance(event, BenchmarkRecorded) or not event.further_seqs:
        return {}
    found = (one.event.model_dump(mode="json") for one in further_shapes_of(workspace, event))
    return {"further_shapes": [further_shape(one) for one in found]}


def _seen(event: CandidateVerified | CandidateRejected | KernelPromoted | PromotionDenied) -> Data:
    reason = getattr(event, "reason", None)
    return {
        "reason": reason.model_dump(mode="json") if isinstance(reason, Reason) else None,
        "gates": [gate.model_dump(mode="json") for gate in event.gates],
    }


def _counterexample(event: CandidateRejected, workspace: Workspace) -> object:
    if event.counterexample_sha256 is None:
        return None
    return orjson.loads(workspace.blobs.get(event.counterexample_sha256))


def _reported(event: CandidateVerified | CandidateRejected, workspace: Workspace) -> Data:
    """Return what the screen found in the sources, where the built files are kept, and the judgement reused."""
    report: Data = {}
    if event.report_sha256 is not None:
        report = orjson.loads(workspace.blobs.get(event.report_sha256))
    built = report.get("built", [])
    assert isinstance(built, list)
    kept = [{**one, "kept_at": str(workspace.blobs.path(one["sha256"]))} for one in built]
    reused = _reused(event.reused_seq, workspace)
    return {"findings": report.get("findings", []), "built": kept, "reused": reused}


def _reused(seq: int | None, workspace: Workspace) -> Data | None:
    if seq is None:
        return None
    (earlier,) = workspace.ledger.read(after_seq=seq - 1, limit=1)
    return {"seq": seq, "recorded_at": earlier.recorded_at, "run_id": getattr(earlier.event, "run_id", None)}
