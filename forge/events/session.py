"""Sessions: a program proposes candidates round by round, within a budget and under rules that end it."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.authoring import BudgetLeft, StepKind
from forge.domain.budget import Amounts, Count, Price
from forge.domain.digest import Digest, is_unset
from forge.domain.evidence import Interval
from forge.domain.session import RoundEnd, SessionEnd, SessionTerms, WishKind
from forge.events.fact import Fact

Number = Annotated[int, Field(ge=1)]
Purpose = Literal["model", "screening", "candidate"]
"""Purpose of a reservation: an answer of a language model, one screening, or one candidate in all phases."""


class SessionOpened(Fact):
    """A person let an author work on a task, within a budget."""

    session_id: str
    task_id: str
    author: str
    """Name of the kind of author. Its candidates and wishes are written by `agent:<author>`."""
    author_sha256: Digest
    """Digest of all that the author was made from: template, options, version."""
    seed: Count
    """Seed of the author's random numbers."""
    transcript_version: Number
    """Version of the loop and of what it stores. Another version can't be resumed or replayed."""
    terms: SessionTerms
    budget: Amounts
    round_budget: Amounts | None
    """Largest amounts of one round. None: a round may use all that the session has left."""
    prices: tuple[Price, ...]
    """Prices of the models that the session may ask. They are frozen here."""
    policy_sha256: Digest
    made_from_sha256: Digest | None = Field(default=None, exclude_if=is_unset)
    """Digest of the files and options that the author is made from again. None: another program made it."""


class SessionClosed(Fact):
    """The session ended. Nothing more is asked, and no more candidates are taken in."""

    session_id: str
    reason: SessionEnd
    detail: str
    """One sentence with the values behind the reason."""


class StepProposed(Fact):
    """The author asked for a step, which begins a round. It is an author's text, and decides nothing."""

    session_id: str
    round: Number
    kind: StepKind
    step_sha256: Digest
    """Digest of the whole step, with every file of its drafts."""
    left: BudgetLeft
    """Budget as the author saw it."""


class StepAnswered(Fact):
    """One request of a step was carried out; the answer is what the author learns from it."""

    session_id: str
    round: Number
    request: Number
    entry_sha256: Digest
    """Digest of the entry in the author's log."""
    kernel_id: str | None
    """Kernel that was promoted. None: there was none."""
    speedup: Interval | None
    """Speedup over the first baseline of the task, which is the same in all rounds. None: it wasn't measured."""
    floor_fraction: Annotated[float, Field(gt=0)] | None
    """Shortest possible time divided by the candidate's time. None: it wasn't measured."""


class RoundClosed(Fact):
    """Everything that a step asked for was answered or refused."""

    session_id: str
    round: Number
    reason: RoundEnd
    detail: str
    """One sentence with the values behind the reason."""


class ModelRequested(Fact):
    """A language model is about to be asked. It is recorded before anything is sent, with its reservation."""

    session_id: str
    round: Number
    request: Number
    model: str
    prompt_sha256: Digest
    most_tokens: Number
    """Number of tokens that the answer may have, at most."""


class ModelResponded(Fact):
    """A language model answered."""

    session_id: str
    round: Number
    request: Number
    response_sha256: Digest
    prompt_tokens: Count
    answer_tokens: Count


class ModelFailed(Fact):
    """A request reached no answer that can be used, and it is known why."""

    session_id: str
    round: Number
    request: Number
    cause: Literal["unreachable", "timeout", "refused", "malformed"]
    detail: str


class ModelLost(Fact):
    """The process ended after a request was recorded, so that it isn't known whether it was sent and paid for."""

    session_id: str
    round: Number
    request: Number


class BudgetGranted(Fact):
    """A person gave a session more."""

    session_id: str
    more: Amounts
    reason: str


class BudgetReserved(Fact):
    """The worst case of a request was set aside, before the request was made."""

    session_id: str
    round: Number
    request: Number
    """Number of the request in the session."""
    purpose: Purpose
    place: Annotated[int, Field(ge=0)]
    """Place of the draft in the round's step; 0 if the request is for the whole step."""
    for_run: str | None
    """Run of the candidate. None: the request is for no candidate."""
    worst: Amounts


class BudgetSettled(Fact):
    """A request used this; the rest of its reservation is free again."""

    session_id: str
    round: Number
    request: Number
    used: Amounts
    """Amounts that were used. The whole reservation counts if the request was lost."""
    uncovered: Amounts
    """The part of it for which reservation and budget weren't enough."""


class BudgetRefused(Fact):
    """There was less left than a request's worst case, so it wasn't made."""

    session_id: str
    round: Number
    purpose: Purpose
    needed: Amounts
    left: Amounts
    detail: str


class WishRefused(Fact):
    """An author or a process asked for what isn't its to decide, and nothing was changed."""

    session_id: str
    round: Number | None
    """Round whose step was the wish. None: it came from outside the loop."""
    wish: WishKind
    detail: str
