"""Prints the lists of runs, tasks and kernels, with what was asked of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from forge.cli.document import emit_document
from forge.cli.kernel_summary import resident_interval
from forge.cli.output import SIMULATED, emit_answer, emit_json, emit_table, say, shape_text, short
from forge.cli.suggest import suggest
from forge.errors import UnknownName

NEWEST_EVENTS = 50
"""Number of events that a table shows if no option says which. Chosen; they fill one screen or two."""
Document = dict[str, Any]  # Any: a JSON document
Key = Callable[[Document], Any]  # Any: what a column is ordered by


@dataclass(frozen=True)
class Only:
    """A value that the user wants of each row."""

    wanted: str | None
    """Value as it was given; None for rows with any value."""
    key: Key
    """Function that returns what a row has."""
    known: Callable[[], Iterable[str]]
    """Function that returns the values that a row may have. It is called only if no row has the wanted one."""
    usual: Callable[[str], str] = str
    """Function that returns the name that rows have for another name of the same thing."""

    def value(self, rows: Sequence[Document], kind: str) -> str | None:
        """Return the wanted value as rows have it; raise UnknownName if no row has or may have it."""
        present = {str(self.key(row)) for row in rows}
        if self.wanted is None or not present or self.wanted in present:
            return self.wanted
        usual = self.usual(self.wanted)
        if usual in present:
            return usual
        possible = present.union(self.known())
        if usual not in possible:
            raise UnknownName(kind, self.wanted, sorted(possible))
        say(f"note: nothing here has the {kind} {usual!r}")
        return usual


def listed(
    rows: Iterable[Document],
    *,
    only: Mapping[str, Only],
    columns: Mapping[str, Key],
    sort: str | None,
    limit: int | None,
) -> list[Document]:
    """Return the rows with the wanted values, in the wanted order, up to the limit.

    `only` has what is wanted, by its name for people. `columns` says what orders each column.
    Raises UnknownName for a value that no row may have, and for an unknown column.
    """
    found = list(rows)
    for kind, one in only.items():
        value = one.value(found, kind)
        found = [row for row in found if value is None or str(one.key(row)) == value]
    if sort is not None:
        name = sort.removeprefix("-")
        if name not in columns:
            raise UnknownName("column", name, list(columns))
        found.sort(key=lambda row: (columns[name](row) is None, columns[name](row)), reverse=sort.startswith("-"))
    return found[:limit]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user wants of a list: its order, its length and its form."""

    sort: str | None = None
    limit: int | None = None
    as_json: bool = False


def state_text(summary: Document) -> str:
    """Return a run's state, marked if its judgement was simulated."""
    return f"{summary['state']} ({SIMULATED})" if summary["simulated"] else str(summary["state"])


def _shapes(task: Document) -> str:
    """Return a task's main shape in words, with the number of further ones."""
    further = len(task.get("further_shapes", ()))
    return shape_text(task["shape"]) + (f" and {further} more" if further else "")


RUN_COLUMNS: dict[str, Key] = {
    "number": lambda one: one["number"],
    "run": lambda one: one["number"],
    "state": state_text,
    "task": lambda one: one["task_id"],
}
TASK_COLUMNS: dict[str, Key] = {
    "task": lambda one: one["task_id"],
    "operation": lambda one: one["op"],
    "gpu": lambda one: one["target"]["gpu"],
    "dtype": lambda one: one["dtype"],
    "shape": _shapes,
}
KERNEL_COLUMNS: dict[str, Key] = {
    "kernel": lambda one: one["kernel_id"],
    "status": lambda one: one["status"],
    "shape": lambda one: shape_text(one["shape"]),
    "speedup": lambda one: one["benchmark"]["speedup"],
    "resident": lambda one: (resident_interval(one) or {"ratio": 0.0})["ratio"],
    "over": lambda one: one["baseline"],
}
"""Column of the list of kernels -> the value that it is sorted by. The two tables above do this for runs and
tasks."""


def show_runs(summaries: Iterable[Document], asked: Asked, *, state: str | None, task: str | None) -> None:
    """Print runs, oldest first; each has a number, which is a short name for it."""
    numbered = [{"number": place} | summary for place, summary in enumerate(summaries, 1)]
    found = listed(
        (one for one in numbered if task is None or str(one["task_id"]).startswith(task)),
        only={"state": Only(state, lambda one: one["state"], _states)},
        columns=RUN_COLUMNS,
        sort=asked.sort,
        limit=asked.limit,
    )
    if task is not None and not any(str(one["task_id"]).startswith(task) for one in numbered):
        say(f"note: no run is of a task that begins with {task!r}; forge task list lists tasks")
    rows = [(f"r{one['number']}", one["run_id"], state_text(one), _folder(one), one["task_id"]) for one in found]
    emit_answer(found, "Runs", ("number", "run", "state", "folder", "task"), rows, as_json=asked.as_json)


def _states() -> tuple[str, ...]:
    from forge.projections.runs import Stage  # here, as below: it takes longer than a plain list

    return get_args(Stage)


def _statuses() -> tuple[str, ...]:
    from forge.projections.standing import Status

    return get_args(Status)


def _of_tasks(column: str) -> Callable[[], Iterable[str]]:
    def possible() -> Iterable[str]:
        from forge.app.task_values import possible_values

        return possible_values(column)

    return possible


def _usual_gpu(untrusted_name: str) -> str:
    from forge.app.task_values import usual_name

    return usual_name("gpu", untrusted_name)


def _folder(summary: Document) -> str:
    return "sealed" if summary["sealed"] else "open"


def show_tasks(tasks: Iterable[Document], asked: Asked, *, op: str | None, gpu: str | None) -> None:
    """Print tasks."""
    found = listed(
        tasks,
        only={
            "operation": Only(op, TASK_COLUMNS["operation"], _of_tasks("op")),
            "gpu": Only(gpu, TASK_COLUMNS["gpu"], _of_tasks("gpu"), _usual_gpu),
        },
        columns=TASK_COLUMNS,
        sort=asked.sort,
        limit=asked.limit,
    )
    rows = [(t["task_id"], t["op"], t["target"]["gpu"], t["dtype"], _shapes(t)) for t in found]
    emit_answer(found, "Tasks", ("task", "operation", "gpu", "dtype", "shape"), rows, as_json=asked.as_json)


def show_kernels(
    entries: Iterable[Document], asked: Asked, *, op: str | None, gpu: str | None, status: str | None
) -> None:
    """Print entries of the registry."""
    found = listed(
        entries,
        only={
            "operation": Only(op, lambda one: one["op"], _of_tasks("op")),
            "gpu": Only(gpu, lambda one: one["target_gpu"], _of_tasks("gpu"), _usual_gpu),
            "status": Only(status, lambda one: one["status"], _statuses),
        },
        columns=KERNEL_COLUMNS,
        sort=asked.sort,
        limit=asked.limit,
    )
    rows = [
        (
            *(e["kernel_id"], e["status"], shape_text(e["shape"])),
            *(f"{e['benchmark']['speedup']:.3f}x", _resident(e), e["baseline"]),
        )
        for e in found
    ]
    emit_answer(found, "Kernels", tuple(KERNEL_COLUMNS), rows, as_json=asked.as_json)


def _resident(entry: Document) -> str:
    """Return the speedup with operands in the cache; a dash if it wasn't measured."""
    found = resident_interval(entry)
    return "-" if found is None else f"{found['ratio']:.3f}x"


def show_task(task: Document, *, as_json: bool) -> None:
    """Print one task with its digests."""
    if as_json:
        emit_json(task)
    else:
        emit_document("Task", task)


def show_tokens(tokens: Sequence[Document], *, as_json: bool) -> None:
    """Print tokens with their states."""
    columns = ("name", "scope", "state", "expires_at", "granted_at", "granted_by")
    rows = [[*(one[column] for column in columns), short(one["token_sha256"])] for one in tokens]
    heads = ("name", "scope", "state", "expires", "granted", "by", "digest")
    emit_answer(tokens, "Tokens", heads, rows, as_json=as_json)


def show_lessons(lessons: Sequence[Document], *, as_json: bool) -> None:
    """Print lessons."""
    rows = [(one["lesson_id"], one["state"], one["playbook"], one["ended"], one["text"]) for one in lessons]
    emit_answer(lessons, "Lessons", ("lesson", "state", "playbook", "ended", "what it says"), rows, as_json=as_json)


def show_requests(requests: Sequence[Document], *, as_json: bool) -> None:
    """Print open requests for work."""
    columns = ("run_id", "target", "state", "until", "requested_by", "requested_at")
    rows = [[one[column] for column in columns] for one in requests]
    emit_answer(requests, "Open requests", ("run", "target", "state", "until", "by", "at"), rows, as_json=as_json)


def show_run(summary: Document, *, with_hint: bool = True) -> None:
    """Print a run's state; of a refused one also the command that shows what its compiler or its process said."""
    emit_document("Run", {**summary, "state": state_text(summary)})
    if with_hint and summary.get("reason"):
        suggest("try", f"forge run show {summary['run_id']} --log")


def show_newest_events(events: Sequence[Document]) -> None:
    """Print the newest events, and say how to see older ones."""
    show_events(events)
    if events and events[0]["seq"] > 1:
        say(f"these are the newest {len(events)} events: --last N shows more of them, --after 0 all")


def show_events(events: Iterable[Document]) -> None:
    """Print events of the ledger."""
    rows = [
        (e["seq"], e["recorded_at"][:19], e["type"], e["stream"][:60], e["actor"], short(e["event_hash"]))
        for e in events
    ]
    emit_table("Ledger", ("seq", "recorded at", "type", "stream", "actor", "hash"), rows)
