"""Takes one draft of a session through the phases, and says what its author may learn from that."""

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from forge.app.phases import phases
from forge.app.runs.recorded_evidence import report_of
from forge.app.runs.states import abort, finish_phase
from forge.app.sessions.feedback import feedback_of
from forge.app.stored.run_summary import next_of
from forge.app.workspace import Workspace
from forge.domain.authoring import Draft, Judged
from forge.domain.evidence import Interval, WorkloadTiming
from forge.domain.session import REPEATS
from forge.domain.verdict import UNDECIDED, Accepted, Inconclusive, Reason, Rejected, Verdict
from forge.errors import EnvironmentUnfit
from forge.events import KernelPromoted
from forge.events.work import LastPhase
from forge.ledger.runs.taken import taken
from forge.pipeline.held_out import names_a_shape
from forge.projections.runs import RunState

PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Pattern of a file's name that is written as the author gave it."""
WITHHELD = "refused at a shape that was drawn for this candidate alone, which isn't told"
"""Message of a refusal whose own message would tell a held-out shape."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What was found about a draft, and for how long it held the device."""

    entry: Judged
    device_ms: int
    speedup: Interval | None
    floor_fraction: float | None


def judge(
    workspace: Workspace, run_id: str, draft: Draft, *, author: str, progress: Progress, repeats: int = REPEATS
) -> Judging:
    """Submit a draft in its run, run the phases up to the decision, and return what came of it.

    At most `repeats` phases are run again, because the machine failed or noise left no decision.
    """
    device_ns, unfit = 0, ""
    with taken(workspace.directory(run_id)) as is_ours:
        if is_ours:
            try:
                hand_in(workspace, run_id, draft, author=author)
                device_ns = _through_phases(workspace, run_id, progress, repeats)
            except EnvironmentUnfit as error:
                unfit = error.message
        else:
            unfit = f"another process works on run {run_id}"
    return judging_of(workspace, run_id, draft, device_ns=device_ns, unfit=unfit)


def judging_of(workspace: Workspace, run_id: str, draft: Draft, *, device_ns: int, unfit: str) -> Judging:
    """Return what came of a draft whose phases have ended; `unfit` says why the machine couldn't run them."""
    run = finish_phase(workspace, workspace.find_run(run_id))
    if run.submitted is None and run.rejection is not None and run.state != "aborted":
        abort(workspace, run, "its candidate was refused at submission")
    timed, report = timing_of(run), report_of_rejection(workspace, run)
    entry = judged_entry(run, draft, report=report, unfit=unfit)
    feedback = feedback_of(workspace, run, timed, names_held_out=_names_held_out(run, report))
    return Judging(
        entry=entry.model_copy(update={"feedback": feedback}),
        device_ms=device_ns // 1_000_000,
        speedup=timed.speedups[0].interval if timed else None,
        floor_fraction=timed.floor_fraction if timed else None,
    )


def hand_in(workspace: Workspace, run_id: str, draft: Draft, *, author: str) -> None:
    """Submit a draft in its run, unless that was done."""
    run = workspace.find_run(run_id)
    if run.submitted is not None or run.rejection is not None:
        return
    with tempfile.TemporaryDirectory(prefix="forge-draft-") as folder:
        for place, (name, text) in enumerate(draft.files.items()):
            is_plain = PLAIN_NAME.fullmatch(name) and name not in (".", "..")
            (Path(folder) / (name if is_plain else f"file-{place}")).write_bytes(text.encode(errors="replace"))
        phases.submit_candidate(workspace, run, Path(folder), author=author, actor=author)


def _through_phases(workspace: Workspace, run_id: str, progress: Progress, repeats: int) -> int:
    """Run phases until the run ends or can't be decided; return the nanoseconds that they took."""
    began, phases_left = time.monotonic_ns(), PhasesLeft(repeats)
    while True:
        run = finish_phase(workspace, workspace.find_run(run_id))
        match phases_left.take(next_phase(run)):
            case "verify":
                phases.verify_candidate(workspace, run, progress=progress)
            case "bench":
                phases.benchmark_candidate(workspace, run, progress=progress)
            case "promote":
                phases.promote_candidate(workspace, run)
            case None:
                return time.monotonic_ns() - began


@dataclass
class PhasesLeft:
    """The phases that a candidate may still go through: each once, and `repeats` of them once more."""

    repeats: int
    _begun: set[LastPhase] = field(default_factory=set)

    def take(self, phase: LastPhase | None) -> LastPhase | None:
        """Count a phase that is due, and return it; None if it may not be run again."""
        if phase in self._begun:
            self.repeats -= 1
        if phase is None or self.repeats < 0:
            return None
        self._begun.add(phase)
        return phase


def next_phase(run: RunState) -> LastPhase | None:
    """Return the phase that a session's run goes on with; None if it is decided, or can't be."""
    match run.state:
        case "candidate_ready":
            return "verify"
        case "verified" if next_of(run) == f"forge bench {run.run_id}":
            return "bench"
        case "benchmarked":
            return "promote"
        case _:
            return None


def report_of_rejection(workspace: Workspace, run: RunState) -> dict[str, object]:
    """Return the report of a run's refusal by the gates; empty if there is none."""
    report = report_of(workspace, run.rejection.event) if run.rejection else None
    found: dict[str, object] = orjson.loads(report) if report is not None else {}
    return found


def judged_entry(run: RunState, draft: Draft, *, report: dict[str, object], unfit: str = "") -> Judged:
    """Return what the author learns of a run: the verdict, its reason and the speedup, and nothing held out."""
    decision = run.promotion.event if run.promotion else None
    promoted = decision if isinstance(decision, KernelPromoted) else None
    candidate = run.submitted.event.candidate if run.submitted else draft.candidate_sha256 or draft.sha256
    return Judged(
        draft=draft.sha256,
        candidate=candidate,
        verdict=_verdict(run, report, unfit),
        speedup=promoted.speedup if promoted else _over_best(run),
        kernel_id=promoted.kernel_id if promoted else None,
        verified=run.verified is not None,
    )


def _verdict(run: RunState, report: dict[str, object], unfit: str) -> Verdict:
    if isinstance(getattr(run.promotion, "event", None), KernelPromoted):
        return Accepted()
    reason = _reason(run, report)
    if reason is None or unfit:
        detail = run.error.event.detail if run.error else f"the run is {run.state}"
        return Inconclusive(reason=Reason(code="INFRASTRUCTURE", message=unfit or detail))
    return Inconclusive(reason=reason) if reason.code in UNDECIDED else Rejected(reason=reason)


def _reason(run: RunState, report: dict[str, object]) -> Reason | None:
    if run.promotion is not None and not isinstance(run.promotion.event, KernelPromoted):
        return run.promotion.event.reason
    if run.failure is not None:
        return run.failure.event.reason
    if run.rejection is None:
        return None
    reason = run.rejection.event.reason
    return Reason(code=reason.code, message=WITHHELD) if _names_held_out(run, report) else reason


def _names_held_out(run: RunState, report: dict[str, object]) -> bool:
    """Return whether a refusal's words or counterexample name a shape that was drawn for its candidate alone."""
    refused = run.rejection.event if run.rejection else None
    return refused is not None and refused.held_out_seed is not None and names_a_shape(refused, report)


def timing_of(run: RunState) -> WorkloadTiming | None:
    """Return the times of a run's candidate at the task's shape; None if there are none that count."""
    timed = run.benchmark or run.failure
    if timed is None or not timed.event.workloads:
        return None
    if run.benchmark is None and run.failure and run.failure.event.reason.code in UNDECIDED:
        return None
    return timed.event.workloads[0]


def _over_best(run: RunState) -> Interval | None:
    """Return the speedup over the fastest baseline."""
    timed = timing_of(run)
    if timed is None or not timed.speedups:
        return None
    return min(timed.speedups, key=lambda one: one.baseline_median_ns).interval
