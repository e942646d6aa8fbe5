"""The ground of a session that is worked on: the workspace's ledger, its phases, and a model if one can be asked."""

import queue
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forge.app.sessions import judging, workers
from forge.app.sessions.model_exchange import NS_PER_MS, Exchanged, Model, ModelAnswer, ModelUnanswered, exchange
from forge.app.tasks.create import start_of
from forge.app.workspace import Workspace
from forge.domain.authoring import OUTSIDE, Ask, Draft, Missed, Screen
from forge.domain.budget import Amounts
from forge.domain.digest import Digest, sha256
from forge.domain.verdict import Reason
from forge.errors import ConcurrencyConflict, IdempotencyConflict, IntegrityError
from forge.events import Event, Recorded
from forge.events.run import RunStarted
from forge.events.session import BudgetReserved, ModelFailed, ModelResponded
from forge.pipeline.sessions.ground import SYSTEM, Judgement, Reply, ScreenOutcome
from forge.projections import sessions
from forge.projections.sessions import SessionState

if TYPE_CHECKING:
    from forge.app.sessions.trials import DraftScreener

Watch = Callable[[Recorded[Event], SessionState], None]
"""Callback that is called with each event of the session and the state after it."""


@dataclass
class LedgerGround:
    """Carries out a session's steps in a workspace."""

    workspace: Workspace
    session_id: str
    progress: judging.Progress
    watch: Watch | None = None
    model: Model | None = None
    screener: "DraftScreener | None" = None
    quiet_until: int = 0
    """Sequence number up to which events aren't shown, because they were before an interruption."""
    _state: SessionState | None = None
    _seq: int = 0
    _begun: set[str] = field(default_factory=set)
    """Runs that this process began; any other one was begun by a process that was killed."""
    _sent: dict[int, tuple[BudgetReserved, Ask]] = field(default_factory=dict)
    """Prompts that were sent, and whose answers weren't taken."""
    _answered: "queue.SimpleQueue[tuple[int, Exchanged | None]]" = field(default_factory=queue.SimpleQueue)

    @property
    def state(self) -> SessionState:
        """Return the session's state; only events since the last call are read."""
        stream = f"session:{self.session_id}"
        for recorded in self.workspace.ledger.read(stream=stream, after_seq=self._seq):
            self._state = sessions.begin(recorded) if self._state is None else sessions.apply(self._state, recorded)
            self._seq = recorded.seq
            if self.watch is not None and recorded.seq > self.quiet_until:
                self.watch(recorded, self._state)
        assert self._state is not None, "a session that was found has events"
        return self._state

    def content(self, digest: Digest) -> bytes:
        """Return a blob's bytes; raise BlobCorrupt if they are missing or changed."""
        return self.workspace.blobs.get(digest)

    def record(
        self, *events: Event, seen: SessionState, key: str, actor: str = SYSTEM, blobs: tuple[bytes, ...] = ()
    ) -> bool:
        """Store the bytes and append the events, if the session still has only the events that were seen."""
        for blob in blobs:
            self.workspace.blobs.put(blob)
        run_id = next((one.run_id for one in events if isinstance(one, RunStarted)), self.session_id)
        expected = {f"session:{self.session_id}": seen.events}
        try:
            self.workspace.append(events, run_id=run_id, key=key, actor=actor, expected=expected)
        except ConcurrencyConflict:
            return False
        except IdempotencyConflict:  # a person closed the session
            if self.state.closed is None:
                raise
            return False
        return True

    def new_run(self, request: int) -> RunStarted:
        """Return the beginning of a run of the session's task."""
        task_id = self.state.opened.event.task_id
        started = start_of(self.workspace, task_id, command=f"agent {self.session_id} {request}")
        self._begun.add(started.run_id)
        return started

    def start(self, reserved: BudgetReserved, draft: Draft) -> None:
        """Hand a draft in and ask workers for its phases, if the session has workers."""
        assert reserved.for_run is not None
        if self.state.opened.event.terms.workers:
            workers.hand_over(self.workspace, reserved.for_run, draft, author=self._author)

    def judge(self, reserved: BudgetReserved, draft: Draft, *, first_right: bool) -> Judgement:
        """Take a draft through the phases. A run that a killed process began is settled in full."""
        assert reserved.for_run is not None
        began, run_id, terms = time.monotonic_ns(), reserved.for_run, self.state.opened.event.terms
        if terms.workers:
            found = workers.judge_by_workers(
                self.workspace,
                run_id,
                draft,
                author=self._author,
                progress=self.progress,
                repeats=terms.repeats,
                patience_s=reserved.worst.wall_ms / 1000,
                unwanted=lambda: workers.NOT_WANTED if self.state.closed else "",
                overtaken=lambda: first_right and self._is_overtaken(reserved),
            )
        else:
            found = judging.judge(
                self.workspace,
                run_id,
                draft,
                author=self._author,
                progress=self.progress,
                repeats=terms.repeats,
            )
        wall_ms = (time.monotonic_ns() - began) // NS_PER_MS
        used = Amounts(wall_ms=wall_ms, device_ms=found.device_ms, candidates=1)
        if reserved.for_run not in self._begun:
            used = used.at_least(reserved.worst)
        return Judgement(entry=found.entry, used=used, speedup=found.speedup, floor_fraction=found.floor_fraction)

    def _is_overtaken(self, reserved: BudgetReserved) -> bool:
        """Return whether another candidate of the round passed every gate, and this one didn't; then end the others.

        All of them are given up at once: the loop waits for one after the other.
        """
        current = self.state.current
        runs = [one.reserved.for_run for one in current.requests] if current is not None else []
        states = [self.workspace.find_run(one) for one in runs if one is not None]
        if not any(one.verified is not None for one in states):
            return False
        for one in states:
            if one.run_id != reserved.for_run and one.submitted is not None:
                workers.give_up(self.workspace, one.run_id)
        return next(one.verified is None for one in states if one.run_id == reserved.for_run)

    @property
    def _author(self) -> str:
        return f"agent:{self.state.opened.event.author}"

    def screen(self, reserved: BudgetReserved, step: Screen) -> ScreenOutcome:
        """Screen the step's drafts; the outcome says so if the session has nothing to screen with."""
        if self.screener is None:
            reason = Reason(code="INFRASTRUCTURE", message="this session has nothing to screen drafts with")
            return ScreenOutcome(entry=Missed(step="screen", reason=reason), used=Amounts())
        return self.screener.screen(reserved, step, self.state.opened.event.task_id)

    def begins(self, request: int) -> bool:
        """Return True: a running session begins each request itself. Only a replay may find one that never began."""
        del request
        return True

    def begin_ask(self, reserved: BudgetReserved, step: Ask) -> None:
        """Send the prompt to the model, once, in a thread of its own.

        A program or a person is asked in `next_reply`: a program ends with the thread that started it.
        """
        self._sent[reserved.request] = reserved, step
        if step.model in OUTSIDE:
            return
        request_id = f"{self.session_id}-{reserved.request}"

        def send() -> None:
            found = None
            try:
                found = exchange(self.model, step, request_id)
            finally:
                self._answered.put((reserved.request, found))

        threading.Thread(target=send, name=f"ask-{request_id}", daemon=True).start()

    def next_reply(self, begun: Collection[int]) -> tuple[int, Reply]:
        """Wait for the next answer. A failure whose cost isn't known is settled in full.

        Raises IntegrityError if asking failed by a fault of Forge's own.
        """
        outside = next((one for one in begun if self._sent[one][1].model in OUTSIDE), None)
        if outside is not None:
            request_id = f"{self.session_id}-{outside}"
            self._answered.put((outside, exchange(self.model, self._sent[outside][1], request_id)))
        number, found = self._answered.get()
        if found is None:
            raise IntegrityError(f"asking the model in request {number} failed by a fault of Forge's own; see above")
        reserved, step = self._sent.pop(number)
        return number, self._reply(reserved, step, found)

    def _reply(self, reserved: BudgetReserved, step: Ask, found: Exchanged) -> Reply:
        named = {"session_id": reserved.session_id, "round": reserved.round, "request": reserved.request}
        wall = Amounts(wall_ms=found.wall_ms)
        match found.answer:
            case ModelUnanswered() as failed:
                detail = _as_utf8(failed.detail).decode()
                ended: ModelResponded | ModelFailed = ModelFailed.model_validate(
                    {**named, "cause": failed.cause, "detail": detail}
                )
                tokens, text = failed.tokens, b""
            case ModelAnswer() as answer:
                text, tokens = _as_utf8(answer.text), (answer.prompt_tokens, answer.answer_tokens)
                counted = {"prompt_tokens": tokens[0], "answer_tokens": tokens[1]}
                ended = ModelResponded.model_validate({**named, **counted, "response_sha256": sha256(text)})
        if tokens is None:
            return Reply(ended=ended, used=reserved.worst.at_least(wall), text=text)
        if step.model in OUTSIDE:
            return Reply(ended=ended, used=wall, text=text)
        price = next(one for one in self.state.opened.event.prices if one.model == step.model)
        return Reply(ended=ended, used=price.of(*tokens) + wall, text=text)


def _as_utf8(untrusted_text: str) -> bytes:
    """Return the text in UTF-8; JSON may spell half of a character, which no file can hold."""
    return untrusted_text.encode(errors="replace")
