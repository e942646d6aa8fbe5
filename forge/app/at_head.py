"""Answers lists from `history.db` where it stands at the ledger's head, without the code that reads events.

Reading events loads a hundred models, which takes longer than the answer. The tables say the same as a fold of the
ledger; tests compare the two. If anything is unusual, there is no answer here, and the whole command opens the
workspace. A policy that wasn't read yet is unusual, and so is an older format. Tables or publications that are behind
are unusual too, and a process that is at work or was killed.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forge.app.runs.quick_run import chosen_run, report_of
from forge.app.stored.keys_place import keys_folder
from forge.app.stored.policy_stamp import was_read
from forge.app.stored.run_documents import OF_A_RUN, RunDocuments, newest_of
from forge.app.stored.run_summary import next_command
from forge.app.stored.untouched import connect_untouched
from forge.app.tasks.brief_path import brief_path
from forge.app.user.home import LEDGER_FILE, REGISTRY_FOLDER, RUNS_FOLDER
from forge.app.user.user_paths import read_regular
from forge.errors import ForgeError
from forge.ledger.blobs import BlobStore
from forge.ledger.crash_marker import BEGAN, ENDED, MARKS_LIMIT, presence_path
from forge.ledger.opening import TAIL_ROWS, check_connected
from forge.ledger.plain_rows import PlainEvent, plain_event, plain_events
from forge.ledger.runs.names import CAS
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.statements import LAST_CHARACTER, SELECT_HEAD, SELECT_STREAMS
from forge.ledger.tree import StoredTree
from forge.lookup.published import read_published
from forge.projections.history_version import PROJECTOR_VERSION, SCHEMA_VERSION
from forge.projections.own_objects import altered_objects
from forge.projections.sqlite_file import require_own

Data = dict[str, object]
Document = dict[str, Any]  # Any: a JSON document, validated when it was recorded
HISTORY_FILE, POINTER = "history.db", "current.json"
BUSY_TIMEOUT_S = 1.0
"""Seconds to wait for a lock; then the whole command answers. Chosen; a commit holds the lock for milliseconds."""
CURSOR = "SELECT ledger_id, seq, event_hash FROM cursor WHERE schema_version = ? AND projector_version = ?"
RUNS = """
    SELECT r.run_id, r.task_id, r.state, r.simulated, r.sealed, r.recorded_at, s.candidate, s.author,
        rejected.reason_code, rejected.message, failed.reason_code, failed.message, k.kernel_id
    FROM runs AS r
    LEFT JOIN candidates AS s ON s.seq = (SELECT max(seq) FROM candidates WHERE run_id = r.run_id)
    LEFT JOIN rejections AS rejected ON rejected.seq = (
        SELECT max(seq) FROM rejections
        WHERE run_id = r.run_id AND stage NOT IN ('benchmark', 'promote') AND seq > coalesce(s.seq, 0))
    LEFT JOIN rejections AS failed ON failed.seq = (
        SELECT max(seq) FROM rejections
        WHERE run_id = r.run_id AND stage = 'benchmark' AND seq > coalesce(s.seq, 0))
    LEFT JOIN kernels AS k ON k.run_id = r.run_id
    ORDER BY r.started_seq
"""
TASKS = "SELECT payload FROM event WHERE type = 'TaskCreated' ORDER BY seq"
EVENTS = "SELECT seq, recorded_at, type, stream, actor, event_hash FROM event ORDER BY seq DESC LIMIT ?"
TASK_FIELDS = (
    *("op", "language", "target", "dtype", "shape", "further_shapes", "objective", "constraints"),
    *("model_family", "minimum_speedup", "baseline", "baselines", "scalars", "reference_sha256", "inputs_sha256"),
    *("tolerance_sha256", "held_out_sha256", "policy_sha256"),
)
"""Fields of a task in the order of its model. A task that has
others, such as contenders or a domain, is left to the whole command."""
CREATED = "SELECT seq FROM event WHERE stream = ? AND type = 'TaskCreated'"
"""Query for the event that created a task."""
OF_RUN = f"""
    SELECT seq FROM event WHERE correlation_id = ? AND type IN ({", ".join("?" * len(OF_A_RUN))}) ORDER BY seq
"""  # noqa: S608 (placeholders)
"""Query for the numbers of a run's events of the types OF_A_RUN."""
PREPARED = ("PlanAccepted", "PromptRendered")
"""Types of a run's events after which `forge plan` has nothing left to record."""
PLANNED = "SELECT type, seq FROM event WHERE correlation_id = ? AND type IN ('PlanAccepted', 'PromptRendered')"
"""Query for the events of a run's plan and prompt."""
HAS_TYPE = "SELECT 1 FROM event WHERE type = ? LIMIT 1"
"""Query that tells whether an event of a type is recorded."""
ENTRIES = "SELECT entry FROM kernel_documents ORDER BY kernel_id"
ENTRY = "SELECT entry FROM kernel_documents WHERE kernel_id = ?"


@dataclass(frozen=True)
class TablesAtHead:
    """The tables of `history.db`, where an audit asks for them (`tables`)."""

    connection: sqlite3.Connection
    file: Path

    @contextlib.contextmanager
    def tables(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection to the tables, for reading."""
        yield self.connection

    @contextlib.contextmanager
    def tables_file(self) -> Iterator[Path]:
        """Yield the file of the tables."""
        yield self.file


class AtHead:
    """The tables and the ledger of a workspace, at the same event."""

    def __init__(self, home: Path, history: sqlite3.Connection, ledger: sqlite3.Connection) -> None:
        self.home = home
        self._history = history
        self._ledger = ledger
        self._ledger_path = home / LEDGER_FILE

    @property
    def publication(self) -> TablesAtHead:
        """Return the history's tables as of the ledger's head, for an audit's queries."""
        return TablesAtHead(self._history, self.home / REGISTRY_FOLDER / HISTORY_FILE)

    @property
    def head_seq(self) -> int:
        """Return the place of the newest event."""
        return int(self._ledger.execute(SELECT_HEAD).fetchone()[0])

    def events(self, *types: str) -> list[PlainEvent]:
        """Return all events of some types, in order; raise LedgerCorrupt, or KeyError if models must read one."""
        return plain_events(self._ledger, self._ledger_path, types)

    def event(self, seq: int) -> PlainEvent:
        """Return the event at a place; raise LedgerCorrupt, or KeyError if a model must read it."""
        return plain_event(self._ledger, self._ledger_path, seq)

    def rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        """Return what a query of the ledger finds."""
        return self._ledger.execute(query, values).fetchall()

    def tree(self) -> contextlib.nullcontext[StoredTree]:
        """Open the Merkle tree over all events."""
        return contextlib.nullcontext(StoredTree(self._ledger, self.head_seq))

    def has_type(self, *types: str) -> bool:
        """Return whether there is an event of one of these types."""
        return any(self._ledger.execute(HAS_TYPE, (name,)).fetchone() for name in types)

    def runs(self) -> list[Data]:
        """Return every run's summary, as `app.runs.run_summary` does, oldest first."""
        return [_run(row) for row in self._history.execute(RUNS)]

    def run(self, name: str) -> Data | None:
        """Return a run's summary with its report, by any of its names; None if the whole command must answer."""
        found = chosen_run(self.runs(), name)
        return None if found is None else found | {"report": report_of(self._ledger, self.home, str(found["run_id"]))}

    def run_documents(self, name: str) -> RunDocuments:
        """Return a run by any of its names, with its events; raise KeyError if the whole command must answer."""
        run = chosen_run(self.runs(), name)
        if run is None:
            raise KeyError(name)
        events = [self.event(seq) for (seq,) in self._ledger.execute(OF_RUN, (run["run_id"], *OF_A_RUN))]
        created = self._ledger.execute(CREATED, (f"task:{run['task_id']}",)).fetchone()
        task = None if created is None else self.event(created[0])
        return RunDocuments(run, task, newest_of(events))

    def tasks(self) -> list[Data]:
        """Return every task as it was recorded, oldest first; an older event may lack fields of a newer one."""
        created = [json.loads(payload) for (payload,) in self._ledger.execute(TASKS)]
        return [{"task_id": event["task_id"], **event["task"]} for event in created]

    def task(self, name: str) -> Data | None:
        """Return the task that an id or its unique beginning means; None if it means none or several."""
        end = f"task:{name}{LAST_CHARACTER}"
        found = [row[0] for row in self._ledger.execute(SELECT_STREAMS, (f"task:{name}", end))]
        fitting = [one for one in found if one == f"task:{name}"] or found
        row = self._ledger.execute(CREATED, (fitting[0],)).fetchone() if len(fitting) == 1 else None
        if row is None:
            return None
        try:
            return _task(self.event(row[0]), ("task_id",))
        except KeyError:
            return None

    def whole_tasks(self) -> list[Data]:
        """Return every task with each field in the model's order; raise KeyError if the whole command must answer."""
        return [_task(one, ("task_id", "created_at")) for one in self.events("TaskCreated")]

    def plan(self, name: str) -> Document | None:
        """Return a run's plan by any of the run's names; None if the whole command must answer."""
        run = chosen_run(self.runs(), name)
        if run is None:
            return None
        found = dict(self._ledger.execute(PLANNED, (run["run_id"],)))
        return self.event(found["PlanAccepted"]).event if len(found) == len(PREPARED) else None

    def brief(self, name: str) -> tuple[str, str]:
        """Return the path and the text of a run's brief; raise KeyError if the whole command must answer."""
        run = self.run_documents(name)
        rendered = run.newest["PromptRendered"].event["rendered_sha256"]
        if "PlanAccepted" not in run.newest:
            raise KeyError("PlanAccepted")
        path = brief_path(self.home / RUNS_FOLDER, run.run_id)
        return str(path), BlobStore(self.home / RUNS_FOLDER / CAS).get(rendered).decode()

    def kernels(self) -> list[Data]:
        """Return the registry's entries, as published."""
        return [json.loads(entry) for (entry,) in self._history.execute(ENTRIES)]

    def newest_events(self, count: int) -> list[Data] | None:
        """Return what a table shows of the newest events, oldest first; None for more than were checked."""
        if count > TAIL_ROWS:
            return None
        found = self._ledger.execute(EVENTS, (count,)).fetchall()
        names = ("seq", "recorded_at", "type", "stream", "actor", "event_hash")
        rows = [dict(zip(names, row, strict=True)) for row in reversed(found)]
        return [row | {"event_hash": row["event_hash"].hex()} for row in rows]

    def kernel(self, kernel_id: str) -> Data | None:
        """Return one entry of the registry; None if there is no such kernel."""
        found = self._history.execute(ENTRY, (kernel_id,)).fetchone()
        entry: Data | None = None if found is None else json.loads(found[0])
        return entry


@contextlib.contextmanager
def at_head(home: Path) -> Iterator[AtHead | None]:
    """Yield the workspace's tables if they stand at the ledger's head and nothing is unusual; otherwise None."""
    with contextlib.ExitStack() as opened:
        try:
            found = _opened(home, opened)
        except (ForgeError, OSError, sqlite3.Error, ValueError, LookupError, TypeError, AttributeError):
            found = None
        yield found


def _opened(home: Path, opened: contextlib.ExitStack) -> AtHead | None:
    ledger_path, registry = home / LEDGER_FILE, home / REGISTRY_FOLDER
    if not (was_read(home) and ledger_path.is_file() and _is_quiet(ledger_path)):
        return None
    ledger = connect_untouched(ledger_path, timeout_s=BUSY_TIMEOUT_S)
    opened.callback(ledger.close)
    ledger_id = check_connected(ledger, ledger_path)
    seq, event_hash = ledger.execute(SELECT_HEAD).fetchone()
    origin = ledger.execute("SELECT origin FROM ledger_meta").fetchone()[0]
    last = Keyring(keys_folder(home), f"{origin}/{ledger_id}").last
    if last is not None and last.size > seq:
        return None
    head = (ledger_id, seq, event_hash.hex())
    shown = json.loads(read_published(str(registry), POINTER))["ledger"]
    if (shown["ledger_id"], shown["seq"], shown["event_hash"]) != head:
        return None
    require_own(registry / HISTORY_FILE)
    history = connect_untouched(registry / HISTORY_FILE, timeout_s=BUSY_TIMEOUT_S)
    opened.callback(history.close)
    if altered_objects(history):
        return None
    if history.execute(CURSOR, (SCHEMA_VERSION, PROJECTOR_VERSION)).fetchone() != head:
        return None
    return AtHead(home, history, ledger)


def _is_quiet(ledger: Path) -> bool:
    """Return whether no process is at work in the workspace, and none was killed there."""
    try:
        marks = read_regular(presence_path(ledger), limit_bytes=MARKS_LIMIT)
    except FileNotFoundError:
        return True
    return marks.count(BEGAN) == marks.count(ENDED)


def _task(created: PlainEvent, first: tuple[str, ...]) -> Data:
    """Return a task in the order of its model; raise KeyError if it has a field that isn't known here."""
    task: Data = {"task_id": created.event["task_id"], "created_at": created.recorded_at, **created.event["task"]}
    target = created.event["task"]["target"]
    task["target"] = {name: target[name] for name in ("platform", "gpu")}
    ordered = {name: task[name] for name in (*first, *TASK_FIELDS) if name in task}
    unknown = task.keys() - ordered.keys() - {"created_at"}
    if unknown:
        raise KeyError(sorted(unknown)[0])
    return ordered


def _run(row: tuple[object, ...]) -> Data:
    run_id, task_id, state, simulated, sealed, started_at, candidate, author, *refused, kernel_id = row
    rejected_code, rejected, failed_code, failed = refused
    code, message = (rejected_code, rejected) if rejected_code is not None else (failed_code, failed)
    return {
        "run_id": run_id,
        "task_id": task_id,
        "state": state,
        "simulated": None if simulated is None else bool(simulated),
        "sealed": bool(sealed),
        "started_at": started_at,
        "candidate": candidate,
        "author": author,
        "reason": None if code is None else {"code": code, "message": message},
        "kernel_id": kernel_id,
        "next": next_command(str(run_id), str(task_id), state=str(state), failed=str(failed or "")),
    }
