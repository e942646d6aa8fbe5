"""Prints the lists of runs, tasks and kernels, with what was asked of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forge.cli.document import emit_document
from forge.cli.kernel_summary import resident_interval
from forge.cli.output import SIMULATED, emit_answer, emit_json, emit_table, say, shape_text, short
from forge.cli.suggest import suggest
from forge.errors import UnknownName

NEWEST_EVENTS = 50
"""Number of events that a table shows if no option says which. Chosen; they fill one screen or two."""
Document = dict[str, Any]  # Any: a JSON document
Key = Callable[[Document], Any]  # Any: what a column is ordered by


def listed(
    rows: Iterable[Document],
    *,
    only: Mapping[str, tuple[str | None, Key]],
    columns: Mapping[str, Key],
    sort: str | None,
    limit: int | None,
) -> list[Document]:
    """Return the rows with the wanted values, in the wanted order, up to the limit.

    `only` has for each option its wanted value, or None, and what a row has. `columns` says what orders each column.
    Raises UnknownName for a value that no row has, and for an unknown column.
    """
    found = list(rows)
    for option, (wanted, key) in only.items():
        if wanted is None:
            continue
        present = {str(key(row)) for row in found}
        if present and wanted not in present:
            raise UnknownName(option, wanted, sorted(present))
        found = [row for row in found if str(key(row)) == wanted]
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
        only={"state": (state, lambda one: one["state"])},
        columns=RUN_COLUMNS,
        sort=asked.sort,
        limit=asked.limit,
    )
    if task is not None and not any(str(one["task_id"]).startswith(task) for one in numbered):
        say(f"note: no run is of a task that begins with {task!r}; forge task list lists tasks")
    rows = [(f"r{one['number']}", one["run_id"], state_text(one), _folder(one), one["task_id"]) for one in found]
    emit_answer(found, "Runs", ("number", "run", "state", "folder", "task"), rows, as_json=asked.as_json)


def _folder(summary: Document) -> str:
    return "sealed" if summary["sealed"] else "open"


def show_tasks(tasks: Iterable[Document], asked: Asked, *, op: str | None, gpu: str | None) -> None:
    """Print tasks."""
    found = listed(
        tasks,
        only={"operation": (op, TASK_COLUMNS["operation"]), "gpu": (gpu, TASK_COLUMNS["gpu"])},
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
            "operation": (op, lambda one: one["op"]),
            "gpu": (gpu, lambda one: one["target_gpu"]),
            "status": (status, lambda one: one["status"]),
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
