"""The author that is a program of the user or a person: it gets the feedback and submits candidates.

Each exchange with it is a request: it is recorded, it costs time, and a replay reads it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from forge.authors.answer import NoAnswer, one_line, read_answer
from forge.authors.attempts import Attempt, meaning_of, why_known
from forge.authors.document import feedback_document
from forge.domain.authoring import Ask, BudgetLeft, Draft, Finished, Judged, LogEntry, Replied, Step, Submit
from forge.domain.digest import Digest, Value, digest_of

VERSION = 1
"""Version of what such an author is asked and how its answers are taken."""
MOST_USELESS = 6
"""Number of exchanges in a row without a candidate that can be judged, after which the session ends. Chosen; each
more costs the time of an agent that doesn't get on."""
MOST_FAILED = 2
"""Number of failed exchanges in a row after which the session ends: a program that hangs does so again."""


class OutsideOptions(Value):
    """How long an exchange may take."""

    minutes: Annotated[int, Field(ge=1, le=24 * 60)] = 30
    """Time from the feedback to the next submission, in minutes. Chosen; a longer time keeps a session waiting for an
    author that has ended."""


@dataclass
class _OutsideProgress:
    attempts: list[Attempt] = field(default_factory=list)
    pending: Draft | None = None
    seen: dict[Digest, int] = field(default_factory=dict)
    answers: int = 0
    useless: int = 0
    failed: int = 0
    note: str | None = None
    finished: str | None = None


@dataclass(frozen=True)
class OutsideAuthor:
    """A program or a person that writes candidates of one task."""

    kind: Literal["command", "person"]
    brief: str
    options: OutsideOptions
    command: str = ""
    """The program's command line, as the user gave it."""

    @property
    def name(self) -> str:
        """Name of this kind of author."""
        return self.kind

    @property
    def identity(self) -> Digest:
        """Digest of the brief, the command, the options and the version."""
        made_of = {"kind": self.kind, "brief": self.brief, "command": self.command, "version": VERSION}
        return digest_of({**made_of, "options": self.options.model_dump(mode="json")})

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Hand in what was submitted last, or tell the feedback and ask for the next submission."""
        del seed
        state = _OutsideProgress()
        for entry in log:
            _take(state, entry)
        if state.finished is not None:
            return Finished(reason="nothing_left", detail=state.finished[:1000])
        if state.failed >= MOST_FAILED or state.useless >= MOST_USELESS:
            detail = f"{max(state.failed, state.useless)} exchanges in a row had no candidate; the last: {state.note}"
            return Finished(reason="machine_failed" if state.failed else "nothing_left", detail=detail[:1000])
        if left.candidates == 0:
            detail = "no candidate may be handed in: expected a budget of at least one"
            return Finished(reason="budget", detail=detail)
        if state.pending is not None:
            return Submit(drafts=(state.pending,))
        hypotheses = {one.draft.sha256: one.draft.hypothesis for one in state.attempts}
        document = feedback_document(log, left, hypotheses=hypotheses, note=state.note)
        wait_ms = self.options.minutes * 60_000
        return Ask(model=self.kind, prompt=document.model_dump_json(indent=1), most_tokens=1, wait_ms=wait_ms)


def _take(state: _OutsideProgress, entry: LogEntry) -> None:
    if isinstance(entry, Judged) and state.pending is not None:
        state.attempts.append(Attempt(state.pending, entry))
        state.pending = None
    if not isinstance(entry, Replied):
        return
    state.answers += 1
    made = _draft(state, entry)
    if isinstance(made, Draft):
        state.pending, state.note, state.useless, state.failed = made, None, 0, 0
    else:
        state.note, state.useless = made, state.useless + 1
        state.failed = state.failed + 1 if entry.text is None else 0


def _draft(state: _OutsideProgress, entry: Replied) -> Draft | str:
    """Return the submitted draft, or why there is none."""
    if entry.text is None:
        return f"there was no submission: {entry.failure}"
    try:
        said = json.loads(entry.text)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and isinstance(said.get("finished"), str):
        state.finished = one_line(said["finished"])
    answer = read_answer(entry.text)
    if isinstance(answer, NoAnswer):
        return answer.why
    draft = Draft(files=answer.files, hypothesis=answer.hypothesis or f"submission {state.answers}")
    others = {name: text for name, text in answer.files.items() if name != "kernel.py"}
    meaning = digest_of({**others, "kernel": meaning_of(answer.files["kernel.py"])})
    same = "the candidate is the same as submission"
    why = why_known(meaning, answer.hypothesis, seen=state.seen, attempts=state.attempts, same=same)
    if why is not None:
        return why
    state.seen[meaning] = state.answers
    return draft
