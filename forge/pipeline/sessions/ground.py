"""What a session's loop stands on: the ledger with phases and models, or a transcript of an earlier session."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from forge.domain.authoring import Ask, Draft, Judged, Missed, Screen, Screened
from forge.domain.budget import Amounts
from forge.domain.digest import Digest
from forge.domain.evidence import Interval
from forge.events import Event
from forge.events.run import RunStarted
from forge.events.session import BudgetReserved, ModelFailed, ModelResponded
from forge.projections.sessions import SessionState

SYSTEM = "system:session"
"""Actor of what the loop records; an author's own events are written by `agent:<author>`."""


class Interrupted(Exception):
    """The recorded session ended its process here: whether the request was carried out isn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one candidate's way through the phases gave."""

    entry: Judged
    used: Amounts
    speedup: Interval | None = None
    """Speedup over the task's first baseline; None if it wasn't measured."""
    floor_fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenOutcome:
    """What one screening gave."""

    entry: Screened | Missed
    used: Amounts
    events: tuple[Event, ...] = ()
    """Events that describe the screening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """How one request of a model ended."""

    ended: ModelResponded | ModelFailed
    used: Amounts
    text: bytes = b""


class Ground(Protocol):
    """Carries out what the loop decides. The same answers give the same events."""

    @property
    def state(self) -> SessionState:
        """Return the session's state now, with what other processes recorded."""

    def content(self, digest: Digest) -> bytes:
        """Return stored bytes."""

    def record(
        self, *events: Event, seen: SessionState, key: str, actor: str = SYSTEM, blobs: tuple[bytes, ...] = ()
    ) -> bool:
        """Store the bytes, and append the events in one transaction, once for each key.

        Return False, and record nothing, if the session has an event that isn't in `seen`.
        """

    def new_run(self, request: int) -> RunStarted:
        """Return the beginning of a run for a candidate; nothing is recorded."""

    def start(self, reserved: BudgetReserved, draft: Draft) -> None:
        """Let workers begin to judge a draft, if the session has them; `judge` waits for their answer."""

    def judge(self, reserved: BudgetReserved, draft: Draft, *, first_right: bool) -> Judgement:
        """Take a draft through the phases; go on if its run exists. Raises Interrupted.

        With `first_right`, the judgement is given up once another candidate of the round has passed every gate.
        """

    def screen(self, reserved: BudgetReserved, step: Screen) -> ScreenOutcome:
        """Screen the step's drafts. Raises Interrupted."""

    def begins(self, request: int) -> bool:
        """Return whether this process begins a request; False where the recorded one ended before."""

    def begin_ask(self, reserved: BudgetReserved, step: Ask) -> None:
        """Send a prompt to a language model; `next_reply` waits for the answer."""

    def next_reply(self, begun: Collection[int]) -> tuple[int, Reply]:
        """Wait for the first answer to one of these requests; return its request with it. Raises Interrupted."""
