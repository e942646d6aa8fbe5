"""Answers plain lists without the parser and the models of events, which take most of a command's time.

A list whose options are all plain is answered here, if `history.db` stands at the ledger's head. Everything else, and
every mistake, is left to the whole command, which says what is wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from forge.cli.plain_options import HOME, JSON, LIMIT, SORT, is_number, plain_options

if TYPE_CHECKING:
    from forge.app.at_head import AtHead
    from forge.cli.lists import Asked

LISTING = (HOME, LIMIT, SORT)
"""Options with a value that every list has."""
Given = Mapping[str, str]
"""Option -> its value; `JSON` has itself."""


@dataclass(frozen=True)
class QuickCommand:
    """A command that may be answered here."""

    valued: tuple[str, ...]
    """Options with a value."""
    answer: "Callable[[AtHead, Given, str | None], bool]"
    """Function that prints the answer to options and argument; it returns False if the whole command must answer."""
    has_argument: bool = False


def quick_list(arguments: Sequence[str]) -> bool:
    """Print the answer to the arguments of a plain list; return False if the whole command must answer."""
    command = COMMANDS.get(tuple(arguments[:2]))
    if command is None:
        return False
    parsed = plain_options(arguments[2:], valued=command.valued, has_argument=command.has_argument)
    if parsed is None:
        return False
    from forge.app.at_head import at_head
    from forge.app.user.home import find_home
    from forge.errors import ForgeError

    given, argument = parsed
    try:
        home = find_home(Path(given[HOME]) if HOME in given else None)
        with at_head(home) as found:
            return found is not None and command.answer(found, given, argument)
    except (ForgeError, OSError, KeyError):  # before anything is printed
        return False


def _runs(found: "AtHead", given: Given, _: str | None) -> bool:
    from forge.cli.lists import show_runs

    show_runs(found.runs(), _asked(given), state=given.get("--state"), task=given.get("--task"))
    return True


def _tasks(found: "AtHead", given: Given, _: str | None) -> bool:
    from forge.cli.lists import show_tasks

    tasks = found.whole_tasks() if JSON in given else found.tasks()
    show_tasks(tasks, _asked(given), op=given.get("--op"), gpu=given.get("--gpu"))
    return True


def _kernels(found: "AtHead", given: Given, _: str | None) -> bool:
    from forge.cli.lists import show_kernels

    wanted = (given.get(option) for option in ("--op", "--gpu", "--status"))
    op, gpu, status = wanted
    show_kernels(found.kernels(), _asked(given), op=op, gpu=gpu, status=status)
    return True


def _kernel(found: "AtHead", given: Given, kernel_id: str | None) -> bool:
    entry = None if kernel_id is None else found.kernel(kernel_id)
    if entry is None:
        return False
    if JSON in given:
        from forge.cli.output import emit_json

        emit_json(entry)
    else:
        from forge.cli.kernel_summary import show_summary

        show_summary(entry)
    return True


def _events(found: "AtHead", given: Given, _: str | None) -> bool:
    if JSON in given or not is_number(given.get("--last", "1")):
        return False
    from forge.cli.lists import NEWEST_EVENTS, show_events, show_newest_events

    last = int(given["--last"]) if "--last" in given else None
    events = found.newest_events(last or NEWEST_EVENTS)
    if events is None:
        return False
    if last is None:
        show_newest_events(events)
    else:
        show_events(events)
    return True


def _run(found: "AtHead", given: Given, name: str | None) -> bool:
    run = None if name is None else found.run(name)
    if run is None:
        return False
    if JSON in given:
        from forge.cli.output import emit_json

        emit_json(run)
    else:
        from forge.cli.lists import show_run

        show_run(run)
    return True


def _task(found: "AtHead", given: Given, name: str | None) -> bool:
    task = None if name is None else found.task(name)
    if task is None:
        return False
    from forge.cli.lists import show_task

    show_task(task, as_json=JSON in given)
    return True


def _tokens(found: "AtHead", given: Given, _: str | None) -> bool:
    from forge.app.access.token_list import tokens_now
    from forge.cli.lists import show_tokens

    show_tokens(tokens_now(found), as_json=JSON in given)
    return True


def _lessons(found: "AtHead", given: Given, _: str | None) -> bool:
    from forge.app.lessons.lesson_list import lessons_of
    from forge.cli.lists import show_lessons

    show_lessons(lessons_of(found), as_json=JSON in given)
    return True


def _requests(found: "AtHead", given: Given, _: str | None) -> bool:
    if found.has_type("WorkRequested"):  # whether a request stands is in the state of its run
        return False
    from forge.cli.lists import show_requests

    show_requests([], as_json=JSON in given)
    return True


def _sessions(found: "AtHead", given: Given, _: str | None) -> bool:
    if found.has_type("SessionOpened"):  # what a session used is a fold of all of its events
        return False
    from forge.cli.output import emit_json

    if JSON in given:
        emit_json([])
    else:
        from forge.cli.agent_view import show_sessions

        show_sessions([])
    return True


def _asked(given: Given) -> "Asked":
    """Return order, length and form of a list."""
    from forge.cli.lists import Asked

    limit = int(given[LIMIT]) if LIMIT in given else None
    return Asked(sort=given.get(SORT), limit=limit, as_json=JSON in given)


COMMANDS: dict[tuple[str, ...], QuickCommand] = {
    ("run", "list"): QuickCommand((*LISTING, "--state", "--task"), _runs),
    ("run", "show"): QuickCommand((HOME,), _run, has_argument=True),
    ("task", "list"): QuickCommand((*LISTING, "--op", "--gpu"), _tasks),
    ("kernel", "list"): QuickCommand((*LISTING, "--op", "--gpu", "--status"), _kernels),
    ("task", "show"): QuickCommand((HOME,), _task, has_argument=True),
    ("token", "list"): QuickCommand((HOME,), _tokens),
    ("lesson", "list"): QuickCommand((HOME,), _lessons),
    ("work", "list"): QuickCommand((HOME,), _requests),
    ("agent", "list"): QuickCommand((HOME,), _sessions),
    ("ledger", "log"): QuickCommand((HOME, "--last"), _events),
    ("kernel", "show"): QuickCommand((HOME,), _kernel, has_argument=True),
}
"""Words of a command -> how it is answered here."""
