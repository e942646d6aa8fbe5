"""Finds an earlier judgement of the same candidate, or of the same program, that may be reused."""

from collections.abc import Iterable

from forge.domain.digest import Digest
from forge.domain.verdict import ReasonCode
from forge.events import CandidateRejected, CandidateSubmitted, CandidateVerified, Event, Recorded
from forge.pipeline.job import RecordedCandidate, simulated
from forge.pipeline.outcome import Outcome

PASSING: frozenset[ReasonCode] = frozenset({"TIMEOUT", "OUT_OF_MEMORY", "RESOURCE_ABUSE", "INFRASTRUCTURE"})
"""Reasons that a busy machine can cause. A refusal with one of these is never reused."""


Judgement = Recorded[CandidateVerified] | Recorded[CandidateRejected]
"""Judgement that stands."""


def judged_earlier(evidence: RecordedCandidate, history: Iterable[Recorded[Event]]) -> Judgement | None:
    """Return an earlier refusal of the same program, or an earlier verdict on the same bytes; None if there is none.

    Task, gates, policy, machine and sandbox must be the same. A refusal is preferred to an acceptance. Judgements
    that were themselves reused don't count.
    """
    gates = evidence.gates_sha256
    programs: dict[Digest, Digest | None] = {}
    accepted: Judgement | None = None
    refused: Judgement | None = None
    for recorded in history:
        event = recorded.event
        if isinstance(event, CandidateSubmitted) and event.task_id == evidence.task.task_id:
            programs[event.candidate] = event.normalised_sha256
        elif isinstance(event, CandidateVerified) and _same_terms(event, evidence, gates):
            if _same_bytes(event, evidence) and _same_wall(event, evidence) and _same_draw(event, evidence):
                accepted = recorded  # type: ignore[assignment]  # matched by its event
        elif isinstance(event, CandidateRejected) and _same_terms(event, evidence, gates):
            same_program = _is_program(event, evidence, programs) and not _own_tests_failed(event)
            if _same_bytes(event, evidence) or same_program:
                refused = recorded  # type: ignore[assignment]  # matched by its event
    return refused or accepted


def _same_terms(event: CandidateVerified | CandidateRejected, evidence: RecordedCandidate, gates: Digest) -> bool:
    passing = isinstance(event, CandidateRejected) and (event.reason.code in PASSING or event.stage == "submit")
    named = (event.task_id, event.gates_sha256, event.env_sha256)
    wanted = (evidence.task.task_id, gates, evidence.environment.env_sha256)
    return named == wanted and event.reused_seq is None and not passing


def _same_bytes(event: CandidateVerified | CandidateRejected, evidence: RecordedCandidate) -> bool:
    return event.candidate == evidence.submitted.candidate


def _same_wall(event: CandidateVerified, evidence: RecordedCandidate) -> bool:
    return event.isolation == evidence.isolation and event.simulated == simulated(evidence)


def _same_draw(event: CandidateVerified, evidence: RecordedCandidate) -> bool:
    """Return False if the shapes held out were fixed, and this candidate's must be drawn for it alone."""
    return event.held_out_seed is not None or not evidence.draws_held_out


def _is_program(event: CandidateRejected, evidence: RecordedCandidate, programs: dict[Digest, Digest | None]) -> bool:
    own = evidence.submitted.normalised_sha256
    return own is not None and programs.get(event.candidate) == own


def _own_tests_failed(event: CandidateRejected) -> bool:
    """Return True if the author's own tests failed; another candidate with the same program may have other tests."""
    return bool(event.gates) and event.gates[-1].name == "own_tests"


def take_over(evidence: RecordedCandidate, recorded: Judgement, report: bytes | None) -> Outcome:
    """Return the earlier judgement as this run's outcome, with the number of its event."""
    own: dict[str, object] = {
        "run_id": evidence.run_id,
        "candidate": evidence.submitted.candidate,
        "reused_seq": recorded.seq,
    }
    if isinstance(recorded.event, CandidateVerified):
        own["attempt"] = evidence.attempt
    event = recorded.event.model_copy(update=own)
    return Outcome(events=(event,), files={"verification_report.json": report} if report is not None else {})
