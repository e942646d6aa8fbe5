"""The desk: takes questions and changes from any thread, and answers each in the thread whose workspace it needs.

A ledger may be used only by the thread that opened it. So one thread reads, another one answers what takes long, and
a third one writes. The third opens a workspace for each change and closes it after. Between two changes, then, the
desk keeps no other process from repairing what a killed one left.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from forge.app.access.tokens import Caller, require_accepted
from forge.app.desk.changes import opened
from forge.app.desk.rates import LongAnswers, Rate
from forge.app.desk.refused_calls import LACKING_RIGHTS, RefusedCalls
from forge.app.desk.view import View
from forge.app.runs.refused_requests import record_refusal
from forge.app.workspace import Workspace
from forge.errors import ForgeError, LedgerCorrupt, RequestRefused

Answered = TypeVar("Answered")
WRITES_PER_S = 2.0
"""Number of changes a second that one actor may make in the long run. Chosen; a person or an agent needs fewer."""
BURST_OF_WRITES = 30.0
"""Number of changes that one actor may make at once, before the long run's limit holds. Chosen; a script that creates
some tasks isn't refused."""


class Desk:
    """Answers for one workspace until it is closed."""

    def __init__(self, home: Path, *, read_only: bool = False, names_paths: bool = False) -> None:
        self.home = home
        self._names_paths = names_paths
        """Whether an error may name the folder of the workspace: to its own user at the terminal it may."""
        self.read_only = read_only
        self.damage: str | None = None
        """What a check of the ledger found; None if it found nothing. While there is damage nothing is written."""
        self.last_check: dict[str, object] | None = None
        """Report of the last check of the ledger; None before the first."""
        self.waiting = LongAnswers()
        """Callers that wait for a run, by a tool."""
        self.checks = 0
        """Number of checks of the ledger that have ended."""
        self._reader, self._slow_reader, self._writer = (ThreadPoolExecutor(1) for _ in range(3))
        self._view, self._slow_view = View(home), View(home)
        self._refused = RefusedCalls()
        self._writes = Rate(per_second=WRITES_PER_S, burst=BURST_OF_WRITES)

    def read(self, asked: Callable[[View], Answered]) -> "Future[Answered]":
        """Answer a question that takes milliseconds."""
        return self._reader.submit(self._answer, self._view, asked)

    def read_slowly(self, asked: Callable[[View], Answered]) -> "Future[Answered]":
        """Answer a question that may take seconds, such as a drawing; others don't wait for it."""
        return self._slow_reader.submit(self._answer, self._slow_view, asked)

    def write(self, caller: Caller, asked: Callable[[Workspace], Answered]) -> "Future[Answered]":
        """Make one change as the caller; raise RequestRefused if nothing may be written here, or too much is."""
        return self._writer.submit(self._change, caller, asked)

    def record_refused(self, caller: Caller, error: ForgeError) -> None:
        """Record that a call was refused for what it asked, unless nothing may be written here. It doesn't wait."""
        writable = not self.read_only and self.damage is None
        if writable and (key := self._refused.take(caller, error)) is not None:
            self._writer.submit(self._record, caller, error, key)

    def take_report(self, report: dict[str, object]) -> None:
        """Take up what a check of the ledger found: with problems nothing more is written."""
        self.last_check, self.checks = report, self.checks + 1
        problems = report["problems"]
        assert isinstance(problems, list)
        self.damage = None if report["ok"] else f"{len(problems)} problems; forge ledger verify lists them"

    def close(self) -> None:
        """Answer what was asked, then close the workspaces."""
        self._reader.submit(self._view.close)
        self._slow_reader.submit(self._slow_view.close)
        for one in (self._reader, self._slow_reader, self._writer):
            one.shutdown(wait=True, cancel_futures=False)

    def _answer(self, view: View, asked: Callable[[View], Answered]) -> Answered:
        with self._without_paths():
            view.refresh()
            try:
                return asked(view)
            except LACKING_RIGHTS as error:
                self.record_refused(error.caller, error)
                raise

    def _record(self, caller: Caller, error: ForgeError, key: str) -> None:
        with suppress(ForgeError), opened(self.home, caller) as workspace:
            record_refusal(workspace, "call", caller.actor, error, key=key)

    def _change(self, caller: Caller, asked: Callable[[Workspace], Answered]) -> Answered:
        if self.read_only:
            raise RequestRefused(
                "this server only reads: expected a server that was started without --read-only", status=403
            )
        if self.damage is not None:
            raise LedgerCorrupt(
                f"the ledger failed its check ({self.damage}): nothing is written until it is repaired",
                hint="forge ledger verify",
            )
        if caller.scope != "reader" and not self._writes.take(caller.actor):
            raise RequestRefused(
                f"too many changes of {caller.actor!r}: expected at most {WRITES_PER_S:g} a second", status=429
            )
        with self._without_paths():
            try:
                with opened(self.home, caller) as workspace:
                    require_accepted(workspace, caller)  # other changes came first, and may have taken a while
                    return asked(workspace)
            except LACKING_RIGHTS as error:
                self.record_refused(error.caller, error)
                raise

    @contextmanager
    def _without_paths(self) -> Iterator[None]:
        """Write WORKSPACE for the workspace's folder in errors, which leave this machine."""
        try:
            yield
        except ForgeError as error:
            if not self._names_paths:
                for folder in sorted({str(self.home.absolute()), str(self.home.resolve())}, key=len, reverse=True):
                    error.message = error.message.replace(folder, "WORKSPACE")
                    error.hint = error.hint and error.hint.replace(folder, "WORKSPACE")
                    error.args = (error.message,)
            raise
