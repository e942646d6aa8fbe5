"""Answers how the measured speed of a kernel, a candidate or a slot changed over time, and on which machines."""

import sqlite3

import orjson

from forge.app.audit.answer import COLD, Answer, Cell, candidate_named, named_rows, where
from forge.app.known_kernel import require_kernel
from forge.app.plain_events import HasEvents
from forge.domain.machine_name import worker_name
from forge.domain.shape_slug import shape_slug
from forge.errors import UsageError

COLUMNS = (
    *("seq", "recorded_at", "candidate", "shape", "baseline", "candidate_median_ns", "speedup", "low", "high"),
    *("source", "verdict", "reason_code", "invalidated_seq", "gpu", "driver", "torch", "triton", "perf_key"),
    "node",
)
SHOWN = (
    *("seq", "recorded_at", "candidate", "shape", "baseline", "candidate_median_ns", "speedup", "low", "high"),
    *("source", "reason_code", "invalidated_seq", "driver", "node"),
)
"""Columns of the table for people."""
MEASURED = f"""
    SELECT {", ".join(COLUMNS[:-1])}, env_sha256 AS node FROM benchmarks
    WHERE speedup IS NOT NULL AND candidate IN ({{candidates}}) AND (:baseline IS NULL OR baseline = :baseline)
      AND (:baseline IS NOT NULL OR baseline_used)
      AND (:gpu IS NULL OR gpu = :gpu) AND (:dtype IS NULL OR dtype = :dtype)
    ORDER BY seq DESC, line DESC LIMIT :limit
"""  # noqa: S608 (names of our own columns)
OF_KERNEL = "SELECT candidate FROM kernels WHERE kernel_id = :kernel"
"""Query for the candidate of one kernel, whose measurements are the history."""
SLOT_OF_KERNEL = "SELECT gpu, dtype FROM kernels WHERE kernel_id = ?"
"""Query for the columns of a kernel's slot that a history needs."""
OF_CANDIDATE = "SELECT :candidate"
"""Query that gives the candidate that was asked for, in the place of the other two."""
OF_SLOT = "SELECT DISTINCT candidate FROM candidates WHERE {condition}"
"""Query for all candidates of an operation, a GPU and further conditions."""

NOTES = (
    "withdrawn measurements are listed and say by which event; refused ones say why",
    "source: figures are those of the confirmation where one was made, else of the first measurement",
    "node: the worker that measured, by the beginning of its name; --without-node leaves its evidence out",
    COLD,
)


def history(
    workspace: HasEvents,
    *,
    kernel: str | None = None,
    candidate: str | None = None,
    op: str | None = None,
    gpu: str | None = None,
    dtype: str | None = None,
    baseline: str | None = None,
    limit: int,
) -> Answer:
    """Return the newest `limit` measurements of one thing, oldest first; raise UsageError unless one is named."""
    if sum(given is not None for given in (kernel, candidate, op)) != 1:
        raise UsageError("a history shows one thing: expected a kernel's id, or --candidate, or --op with --gpu")
    if op is not None and gpu is None:
        raise UsageError(f"operation {op!r} without a GPU: times of different GPUs can't be compared; expected --gpu")
    with workspace.publication.tables() as connection:
        condition, given = where(connection, {"op": op, "gpu": gpu, "dtype": dtype})
        values: dict[str, Cell] = {"baseline": baseline, "limit": limit, "gpu": None, "dtype": None, **given}
        if kernel is not None:
            require_kernel(connection, kernel)
            candidates, title = OF_KERNEL, kernel
            values |= {"kernel": kernel, **named_rows(connection, SLOT_OF_KERNEL, (kernel,))[0]}
        elif candidate is not None:
            values["candidate"] = title = candidate_named(connection, candidate)
            candidates = OF_CANDIDATE
        else:
            candidates, title = OF_SLOT.format(condition=condition), f"{op} on {values['gpu']}"
        rows = named_rows(connection, MEASURED.format(candidates=candidates), values)
        nodes = {one: _node_of(connection, workspace, one) for one in {str(row["node"]) for row in rows}}
    for row in rows:
        row |= {"node": nodes[str(row["node"])], "shape": shape_slug(orjson.loads(str(row["shape"])))}
    over = baseline or "the baseline that had to be beaten"
    return Answer(
        f"{title}: measurements over {over}",
        COLUMNS,
        tuple(tuple(row[name] for name in COLUMNS) for row in reversed(rows)),
        notes=NOTES,
        shown=SHOWN,
    )


def _node_of(connection: sqlite3.Connection, workspace: HasEvents, environment: str) -> str | None:
    """Return the name of the node or machine behind an environment; None for one that isn't described."""
    place = connection.execute("SELECT seq FROM environments WHERE env_sha256 = ?", (environment,)).fetchone()
    described = None if place is None else workspace.event(place[0])
    if described is None or described.type != "EnvironmentCaptured":
        return None
    captured = described.event["environment"]
    return worker_name(captured.get("node"), captured["host_sha256"])
