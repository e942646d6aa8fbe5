"""The model author: which prompt is sent next, which answer is handed in, and when it is enough.

Functional pass: until the gates accept a kernel, each answer is one more try, and the first right one ends its
siblings. Optimisation pass: each answer starts from one of the fastest right kernels; what isn't faster is left.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from forge.authors.analyst import metrics_of
from forge.authors.answer import NoAnswer, read_answer
from forge.authors.attempts import Attempt, fastest, meaning_of, why_known
from forge.authors.document import feedback_document
from forge.authors.model.diagnosis import VARIANT as DIAGNOSE
from forge.authors.model.diagnosis import GivenDiagnosis, diagnosis_prompt, read_diagnosis
from forge.authors.model.prompt import WORDINGS, prompt_of
from forge.domain.authoring import (
    MOST_FINALISTS,
    Ask,
    Branch,
    BudgetLeft,
    Draft,
    Ending,
    Finished,
    Judged,
    LogEntry,
    Missed,
    Replied,
    Step,
    Submit,
)
from forge.domain.digest import Digest, Value, digest_of, is_unset
from forge.domain.feedback import Metric, ShownDiagnosis, ShownTiming

DIAGNOSIS_TOKENS = 2000
"""Number of tokens of a diagnosis, at most: it is one sentence and some names."""
VERSION = 3
"""Version of the strategy and its wording. Another version may ask otherwise, so it can't go on with a session."""
MOST_USELESS = 4
"""Number of answers in a row without a candidate, after which the author gives up. More cost money in vain."""
DEFAULT_ANSWER_TOKENS = 16_000
"""Number of tokens of one answer, at most, unless the user says otherwise: a long kernel has about 8,000."""


class ModelOptions(Value):
    """How a model is asked."""

    model: Annotated[str, Field(min_length=1, max_length=100)]
    strategy: Literal["greedy", "beam", "best-of-n"] = "greedy"
    width: Annotated[int, Field(ge=1, le=16)] = 1
    """Number of answers of one round (best-of-n), or of kernels that are gone on with (beam)."""
    passes: Literal["functional", "both"] = "both"
    most_tokens: Annotated[int, Field(ge=1, le=200_000)] = DEFAULT_ANSWER_TOKENS
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    wording: Literal["plain", "stepwise", "bytes"] | None = None
    """Wording of the prompt. None: `plain`, and each branch of a round another one."""
    analyst: Literal["times", "model"] = Field(default="times", exclude_if=lambda kind: kind == "times")
    """Source of the reason why a right kernel is slow: Forge's times, or the model's reading of the metrics."""
    image: str | None = Field(default=None, exclude_if=is_unset)
    """Picture of a profiler in base64, which goes with each prompt. None: there is none."""
    profile: tuple[Metric, ...] = Field(default=(), exclude_if=lambda metrics: not metrics)
    """Numbers of a profile of the user's own, which a diagnosis may cite."""


@dataclass
class _ModelProgress:
    """What a log says so far."""

    attempts: list[Attempt] = field(default_factory=list)
    pending: list[Draft] = field(default_factory=list)
    seen: dict[Digest, int] = field(default_factory=dict)
    """Meaning of a kernel -> number of the answer that had it first."""
    asked: int = 0
    """Number of answers of the current round of branches."""
    answers: int = 0
    useless: int = 0
    note: str | None = None
    failure: str | None = None
    diagnosed: int = 0
    """Number of attempts at the last diagnosis that the model was asked for."""
    diagnosis: ShownDiagnosis | None = None

    @property
    def timing(self) -> ShownTiming | None:
        """Return the times of the last attempt, if it was right."""
        last = self.attempts[-1] if self.attempts else None
        return last.judged.feedback.timing if last and last.is_right and last.judged.feedback else None


@dataclass(frozen=True)
class ModelAuthor:
    """Asks one model for kernels of one task."""

    brief: str
    files: dict[str, str]
    """The starting files; an answer replaces some of them."""
    options: ModelOptions

    @property
    def name(self) -> str:
        """Name of this kind of author."""
        return "model"

    @property
    def identity(self) -> Digest:
        """Digest of the brief, the starting files, the options and the version of the strategy."""
        made_of = {"brief": self.brief, "files": self.files, "options": self.options.model_dump(mode="json")}
        return digest_of({**made_of, "version": VERSION})

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Return the next step, which follows from the log and the budget alone."""
        del seed
        state = self._fold(log)
        ended = self._ended(state, left)
        if ended is not None:
            return ended
        has_right = any(one.is_right for one in state.attempts)
        if self._wants_diagnosis(state):
            return self._ask_why(state)
        if state.asked < self._branches:
            return self._ask(state, log, left)
        together = state.pending[: min(MOST_FINALISTS, left.candidates or 1)]
        return Submit(drafts=tuple(together), first_right=not has_right and len(together) > 1)

    @property
    def _branches(self) -> int:
        return self.options.width if self.options.strategy == "best-of-n" else 1

    def _ended(self, state: _ModelProgress, left: BudgetLeft) -> Finished | None:
        if state.useless >= MOST_USELESS:
            last = state.failure or state.note
            reason: Ending = "machine_failed" if state.failure else "nothing_left"
            return _finished(reason, f"{state.useless} answers in a row had no candidate; the last one: {last}")
        right = [number for number, one in enumerate(state.attempts, 1) if one.is_right]
        if right and self.options.passes == "functional":
            return _finished("finalists_judged", f"attempt {right[0]} passed every gate")
        if left.candidates == 0:
            return _finished("budget", "no candidate may be handed in: expected a budget of at least one")
        return None

    def _fold(self, log: Sequence[LogEntry]) -> _ModelProgress:
        state = _ModelProgress()
        for entry in log:
            match entry:
                case Replied():
                    self._take_answer(state, entry)
                case Judged():
                    self._take_verdict(state, entry)
                case Missed():
                    state.useless += 1
                    state.note = state.failure = entry.reason.message
        return state

    def _wants_diagnosis(self, state: _ModelProgress) -> bool:
        """Return whether the model is asked next why the last kernel, which was right, is slow."""
        between = not state.asked and not state.pending
        is_new = state.diagnosed < len(state.attempts) and state.timing is not None
        return self.options.analyst == "model" and between and is_new

    def _ask_why(self, state: _ModelProgress) -> Ask:
        assert state.timing is not None
        shown = metrics_of(state.timing, self.options.profile)
        return Ask(
            model=self.options.model,
            prompt=diagnosis_prompt(state.attempts[-1].draft.files["kernel.py"], shown),
            most_tokens=min(self.options.most_tokens, DIAGNOSIS_TOKENS),
            temperature=self.options.temperature,
            wording=DIAGNOSE,
            image=self.options.image,
        )

    def _take_diagnosis(self, state: _ModelProgress, entry: Replied) -> None:
        assert state.timing is not None
        shown = metrics_of(state.timing, self.options.profile)
        found = read_diagnosis(entry.text, shown) if entry.text else f"there was no diagnosis: {entry.failure}"
        state.diagnosed = len(state.attempts)
        state.diagnosis = found if isinstance(found, ShownDiagnosis) else None
        state.note = found if isinstance(found, str) else state.note

    def _take_answer(self, state: _ModelProgress, entry: Replied) -> None:
        if self._wants_diagnosis(state):
            self._take_diagnosis(state, entry)
            return
        state.answers += 1
        state.asked += 1
        made = self._draft(state, entry)
        if isinstance(made, Draft):
            state.useless, state.note, state.failure = 0, None, None
            state.pending.append(made)
        else:
            state.useless, state.note, state.failure = state.useless + 1, made, entry.failure
        if state.asked >= self._branches and not state.pending:
            state.asked = 0

    def _take_verdict(self, state: _ModelProgress, entry: Judged) -> None:
        draft = next((one for one in state.pending if one.sha256 == entry.draft), None)
        if draft is None:
            return
        state.pending.remove(draft)
        if entry.was_overtaken:
            return
        had_right = any(one.is_right for one in state.attempts)
        state.attempts.append(Attempt(draft, entry))
        state.diagnosis = None  # it was of another kernel
        if state.attempts[-1].is_right and not had_right:
            state.pending.clear()  # the first right kernel ends its siblings
        if not state.pending:
            state.asked = 0

    def _draft(self, state: _ModelProgress, entry: Replied) -> Draft | str:
        """Return the draft of an answer, or why there is none."""
        if entry.text is None:
            return f"the model gave no answer: {entry.failure}"
        answer = read_answer(entry.text)
        if isinstance(answer, NoAnswer):
            return answer.why
        meaning = meaning_of(answer.files["kernel.py"])
        same = "kernel.py is the same as in answer"
        why = why_known(meaning, answer.hypothesis, seen=state.seen, attempts=state.attempts, same=same)
        if why is not None:
            return why
        state.seen[meaning] = state.answers
        best = fastest(state.attempts, 1)
        files = {**self.files, **answer.files}
        parents = [best[0].judged.candidate] if best else None
        described = {"hypothesis": answer.hypothesis or None, "axis": answer.axis, "parents": parents}
        if "metadata.json" not in answer.files:
            files["metadata.json"] = _described(files["metadata.json"], described)
        return Draft(files=files, hypothesis=answer.hypothesis or f"answer {state.answers}")

    def _ask(self, state: _ModelProgress, log: Sequence[LogEntry], left: BudgetLeft) -> Ask:
        first, *others = self._prompts(state, log, left)
        return Ask(
            model=self.options.model,
            prompt=first.prompt,
            most_tokens=self.options.most_tokens,
            temperature=self.options.temperature,
            wording=first.wording,
            beside=tuple(others),
            image=self.options.image,
        )

    def _prompts(self, state: _ModelProgress, log: Sequence[LogEntry], left: BudgetLeft) -> list[Branch]:
        """Return the prompts of a round that are still to be sent, each in another wording."""
        beam = fastest(state.attempts, self.options.width if self.options.strategy == "beam" else 1)
        parent = beam[len(state.attempts) % len(beam)].draft.files["kernel.py"] if beam else None
        hypotheses = {one.draft.sha256: one.draft.hypothesis for one in state.attempts}
        names = list(WORDINGS)
        wordings = [
            self.options.wording or names[number % len(names)] for number in range(state.asked, self._branches)
        ]
        document = feedback_document(
            log,
            left,
            hypotheses=hypotheses,
            note=state.note,
            analyst=None if state.diagnosis is None else GivenDiagnosis(state.diagnosis),
            profile=self.options.profile,
        )
        return [
            Branch(
                prompt=prompt_of(
                    brief=self.brief,
                    wording=wording,
                    starting=self.files["kernel.py"],
                    entry=str(json.loads(self.files["metadata.json"]).get("entry_point")),
                    parent=parent,
                    last=state.attempts[-1].draft.files["kernel.py"] if state.attempts else None,
                    document=document,
                    has_right_one=bool(beam),
                ),
                wording=wording,
            )
            for wording in wordings
        ]


def _described(metadata: str, changed: Mapping[str, object]) -> str:
    kept = {name: value for name, value in changed.items() if value is not None}
    return json.dumps({**json.loads(metadata), **kept}, indent=2) + "\n"


def _finished(reason: Ending, detail: str) -> Finished:
    return Finished(reason=reason, detail=detail[:1000])
