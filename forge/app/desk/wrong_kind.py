"""Says what a name is that was asked for as something else: the id of a run where a task was expected, and so on."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import TypeVar

from forge.app.access.tokens import Caller
from forge.app.desk.runs import run_of_candidate
from forge.app.desk.view import View
from forge.errors import ForgeError, NotFound, RunNotFound, SessionNotFound, UnknownName

Answered = TypeVar("Answered")
MISSING = (NotFound, RunNotFound, SessionNotFound, UnknownName)
"""Errors that say that there is nothing by a name."""
STREAMS = {"run": "run", "task": "task", "session": "session"}
"""Kind of thing -> the beginning of the name of its stream."""
IS_KERNEL = "SELECT 1 FROM kernels WHERE kernel_id = ?"
NEWEST = """
    SELECT * FROM (SELECT run_id FROM runs ORDER BY started_seq DESC LIMIT :most)
    UNION ALL SELECT * FROM (SELECT task_id FROM tasks ORDER BY seq DESC LIMIT :most)
    UNION ALL SELECT * FROM (SELECT kernel_id FROM kernels ORDER BY promoted_seq DESC LIMIT :most)
"""
"""Names that a mistaken one is compared with. Candidates aren't among them: a caller may not know of one."""
COMPARED = 50
"""Number of newest runs, tasks and kernels each that a wrong name is compared with. Chosen; it takes milliseconds."""
LONGEST_COMPARED = 200
"""Largest length of a name that is compared, in characters. No id is longer."""


def explained(view: View, caller: Caller, names: Iterable[str], ask: Callable[[], Answered]) -> Answered:
    """Return what `ask` returns; an error about a missing thing also says what its name is, or the nearest."""
    try:
        return ask()
    except MISSING as error:
        more = next((said for name in names if (said := _said(view, caller, name, error.message))), "")
        error.message += more
        error.args = (error.message,)
        raise


def _said(view: View, caller: Caller, name: str, message: str) -> str:
    kind = kind_of(view, caller, name)
    if kind is not None:  # unless the message is about what has this name
        return "" if f"{kind} {name!r}" in message else f"; this is the id of a {kind}"
    if not name.isprintable() or len(name) > LONGEST_COMPARED:
        return ""
    with view.workspace.publication.tables() as history:
        known = [str(one) for (one,) in history.execute(NEWEST, {"most": COMPARED})]
    near = get_close_matches(name, known, n=1, cutoff=0.8)
    return f"; nearest: {near[0]}" if near and near[0] not in message else ""


def kind_of(view: View, caller: Caller, name: str) -> str | None:
    """Return what a whole id is of, as far as the caller may know; None if it is none."""
    ledger = view.workspace.ledger
    if name.isprintable():
        for kind, beginning in STREAMS.items():
            if ledger.stream_version(f"{beginning}:{name}"):
                return kind
        with view.workspace.publication.tables() as history:
            if history.execute(IS_KERNEL, (name,)).fetchone() is not None:
                return "kernel"
    with suppress(ForgeError):
        run_of_candidate(view, caller, name)
        return "candidate"
    return None
