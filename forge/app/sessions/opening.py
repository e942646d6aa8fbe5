"""Opens, works off and ends sessions."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from forge.app.sessions.finding import find_session
from forge.app.sessions.judging import Progress
from forge.app.sessions.ledger_ground import LedgerGround, Watch
from forge.app.sessions.model_exchange import Model
from forge.app.sessions.workers import withdraw_open
from forge.app.tasks.known_tasks import find_task
from forge.app.user.given_reason import require_reason
from forge.app.workspace import Workspace, now
from forge.authors.kinds import AuthorSource, make_author
from forge.authors.search.author import SearchAuthor
from forge.domain.authoring import Author
from forge.domain.budget import NOTHING, Amounts, Price
from forge.domain.candidate import Metadata
from forge.domain.digest import Digest, canonical
from forge.domain.session import SessionTerms
from forge.domain.task import Task
from forge.errors import (
    IdempotencyConflict,
    PhaseOutOfOrder,
    SessionTaken,
    TranscriptRefused,
    UsageError,
)
from forge.events.session import BudgetGranted, SessionClosed, SessionOpened, WishRefused
from forge.ledger.runs.taken import held
from forge.pipeline.sessions.loop import Loop
from forge.projections.sessions import SessionState

if TYPE_CHECKING:
    from forge.app.sessions.trials import DraftScreener

TRANSCRIPT_VERSION = 1
"""Version of the loop, of its steps and log entries. A session of another version isn't resumed or replayed."""


@dataclass(frozen=True, kw_only=True)
class SessionRequest:
    """What a person asks for when a session is opened."""

    task: str
    seed: int
    budget: Amounts
    round_budget: Amounts | None = None
    terms: SessionTerms = field(default_factory=SessionTerms)
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a session is worked off with."""

    progress: Progress = lambda _: None
    watch: Watch | None = None
    model: Model | None = None
    screener: "DraftScreener | None" = None


def open_session(
    workspace: Workspace, author: Author, request: SessionRequest, *, source: AuthorSource | None = None
) -> str:
    """Record that an author may work on a task, and store what it is made from; return the session's id.

    Raise UsageError for a template of another operation or language.
    """
    task = find_task(workspace, request.task)
    if isinstance(author, SearchAuthor):
        _require_same_slot(author.template.metadata, task.task)
    session_id = f"{now():%Y%m%dT%H%M%S}_{author.name}_{workspace.rng.randbytes(3).hex()}"
    event = SessionOpened(
        session_id=session_id,
        task_id=task.task_id,
        author=author.name,
        author_sha256=author.identity,
        seed=request.seed,
        transcript_version=TRANSCRIPT_VERSION,
        terms=request.terms,
        budget=request.budget,
        round_budget=request.round_budget,
        prices=request.prices,
        policy_sha256=workspace.keep_policy(),
        made_from_sha256=None if source is None else workspace.blobs.put(canonical(source)),
    )
    workspace.append((event,), run_id=session_id, key=f"session:{session_id}:open")
    return session_id


def _require_same_slot(template: Metadata, task: Task) -> None:
    if (template.op, template.language) != (task.op, task.language):
        raise UsageError(
            f"the template is for {template.op} in {template.language}: "
            f"expected one for {task.op} in {task.language}, as the task asks",
            hint="forge task list",
        )


def author_to_resume(workspace: Workspace, state: SessionState) -> Author:
    """Make a session's author again, to go on with it; a refusal is recorded."""
    try:
        require_version(state)
        return author_of(workspace, state)
    except TranscriptRefused as error:
        _refuse(workspace, state.session_id, error.message)
        raise


def author_of(workspace: Workspace, state: SessionState) -> Author:
    """Make a session's author again from what was stored; raise TranscriptRefused if nothing was."""
    return make_author(source_stored(workspace, state))


def source_stored(workspace: Workspace, state: SessionState) -> AuthorSource:
    """Return what a session's author is made from; raise TranscriptRefused if nothing was stored."""
    stored = state.opened.event.made_from_sha256
    if stored is None:
        raise TranscriptRefused(
            f"session {state.session_id!r} didn't store what its author {state.opened.event.author!r} is made from: "
            "expected the program that opened it"
        )
    return AuthorSource.model_validate_json(workspace.blobs.get(stored))


@contextmanager
def fenced(runs_root: Path, session_id: str) -> Iterator[bool]:
    """Yield True if this process has the session until the block ends; False if another process has it.

    The system releases the lock when the process ends, even by a kill.
    """
    lock = os.open(runs_root / f"session-{session_id}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with held(lock) as is_ours:
        yield is_ours


def work_off(workspace: Workspace, session_id: str, author: Author, means: Means) -> SessionState:
    """Let an author work until its session is closed; go on where a killed process stopped.

    Raises SessionTaken while another process has the session, and PhaseOutOfOrder for one that is closed. Raises
    TranscriptRefused for a session of another version or author.
    """
    state = find_session(workspace, session_id)
    try:
        require_version(state)
        require_author(state, author)
    except TranscriptRefused as error:
        _refuse(workspace, state.session_id, error.message)
        raise
    if state.closed is not None:
        raise PhaseOutOfOrder(
            f"session {session_id!r} is closed ({state.closed.event.reason}): expected one that is open",
            hint=f"forge agent cost {session_id}",
        )
    with fenced(workspace.runs_root, session_id) as is_ours:
        if not is_ours:
            raise _taken(workspace, session_id)
        ground = LedgerGround(
            workspace,
            session_id,
            means.progress,
            watch=means.watch,
            model=means.model,
            screener=means.screener,
            quiet_until=0 if state.events == 1 else workspace.ledger.head.seq,
        )
        ended = Loop(author, ground).run()
        for request in (one for each in ended.rounds for one in each.open_requests):
            if request.reserved.for_run is not None:
                withdraw_open(workspace, request.reserved.for_run)
        return ended


def require_version(state: SessionState) -> None:
    """Raise TranscriptRefused for a session of another version of the loop."""
    version = state.opened.event.transcript_version
    if version != TRANSCRIPT_VERSION:
        raise TranscriptRefused(
            f"session {state.session_id!r} has transcript version {version}: this Forge reads {TRANSCRIPT_VERSION}",
            hint=f"forge agent cost {state.session_id}",
        )


def require_author(state: SessionState, author: Author) -> None:
    """Raise TranscriptRefused for an author that was made from something else than the session's."""
    opened = state.opened.event
    if (opened.author, opened.author_sha256) != (author.name, author.identity):
        raise TranscriptRefused(
            f"session {state.session_id!r} is of author {_named(opened.author, opened.author_sha256)}, not of "
            f"{_named(author.name, author.identity)}: expected the same author, template and options",
            hint="forge agent list",
        )


def _named(name: str, identity: Digest) -> str:
    return f"{name} {identity[:12]}"


def _taken(workspace: Workspace, session_id: str) -> SessionTaken:
    """Record that a second process asked for a session, and return the error."""
    detail = "another process works on it"
    _refuse(workspace, session_id, detail)
    return SessionTaken(
        f"session {session_id!r} is taken: {detail}. Expected one process for each session; wait for it, or end it",
        hint=f"forge agent cost {session_id}",
    )


def _refuse(workspace: Workspace, session_id: str, detail: str) -> None:
    """Record that a session was to be gone on with, and wasn't."""
    event = WishRefused(session_id=session_id, round=None, wish="resume", detail=detail)
    workspace.append((event,), run_id=session_id, key=f"session:{session_id}:refused:{workspace.ledger.head.seq}")


def withdraw(workspace: Workspace, session_id: str, reason: str) -> SessionState:
    """Close a session; the process that works on it ends after the request that it has begun.

    Raises PhaseOutOfOrder if it is closed already, for another reason.
    """
    state = find_session(workspace, session_id)
    event = SessionClosed(session_id=state.session_id, reason="withdrawn", detail=_line(reason))
    with suppress(IdempotencyConflict):
        workspace.append((event,), run_id=state.session_id, key=f"session:{state.session_id}:close")
    state = find_session(workspace, state.session_id)
    assert state.closed is not None
    if state.closed.event != event:
        raise PhaseOutOfOrder(
            f"session {state.session_id!r} is closed already ({state.closed.event.reason}): expected an open one"
        )
    return state


def grant(workspace: Workspace, session_id: str, more: Amounts, reason: str) -> SessionState:
    """Give a session more budget; only a person may. Raises UsageError for nothing, and ActorForbidden.

    Raises PhaseOutOfOrder if the session is closed.
    """
    state = find_session(workspace, session_id)
    if state.closed is not None:
        raise PhaseOutOfOrder(
            f"session {state.session_id!r} is closed ({state.closed.event.reason}): expected one that is open",
            hint=f"forge agent run {state.opened.event.task_id} --help",
        )
    if more == NOTHING:
        raise UsageError("nothing to grant: expected at least one amount above 0", hint="forge agent grant --help")
    event = BudgetGranted(session_id=state.session_id, more=more, reason=_line(reason))
    workspace.append(
        (event,), run_id=state.session_id, key=f"session:{state.session_id}:grant:{workspace.ledger.head.seq}"
    )
    return find_session(workspace, state.session_id)


def _line(reason: str) -> str:
    require_reason(reason)
    return reason
