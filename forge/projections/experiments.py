"""Reads what was tried for an operation and how it ended, failures included, for plans and notes.

The source is `history.db` at the ledger's head: the same rows that an audit shows.
"""

import sqlite3

from forge.domain.digest import canonical
from forge.domain.evidence import Interval
from forge.domain.one_line import one_line
from forge.domain.task import Task
from forge.events.plan import BestKernel, EarlierExperiment
from forge.projections.state import Cell, Row

LATEST_EXPERIMENTS = 8
"""Number of experiments that a plan quotes, so that the author's brief stays about a page."""
EARLIER = """
    SELECT run_id, task_id, ended, reason, speedup, low, high, against, layer, axis, hypothesis, closed_seq,
           coalesce(simulated, 0) AS simulated
    FROM experiments WHERE op = :op
    ORDER BY (gpu = :gpu AND dtype = :dtype) DESC, closed_seq DESC LIMIT :latest
"""
BEST = """
    SELECT kernel_id, kernels.candidate, language, kernels.shape = :shape, kernels.speedup, kernels.low, kernels.high,
           kernels.baseline, kernels.candidate_median_ns, benchmarks.floor_fraction, promoted_seq, benchmark_seq
    FROM kernels LEFT JOIN benchmarks
        ON benchmarks.seq = benchmark_seq AND benchmarks.shape = kernels.shape AND benchmarks.baseline_used
    WHERE kernels.op = :op AND kernels.gpu = :gpu AND kernels.dtype = :dtype AND status = 'active'
    ORDER BY kernels.shape = :shape DESC, language = :language DESC, kernels.low DESC, kernel_id LIMIT 1
"""


def earlier_experiments(history: sqlite3.Connection, task: Task) -> tuple[EarlierExperiment, ...]:
    """Return the latest experiments on the task's operation: first those on its processor and type, newest first."""
    names = {"op": task.op, "gpu": task.target.gpu, "dtype": task.dtype, "latest": LATEST_EXPERIMENTS}
    found = history.execute(EARLIER, names)
    columns = [name for name, *_ in found.description]
    return tuple(_earlier(dict(zip(columns, row, strict=True))) for row in found)


def _earlier(row: Row) -> EarlierExperiment:
    """Return a row of the view as a value, with the author's words made harmless and the task's id cut."""
    words = {name: one_line(_text(row[name])) for name in ("layer", "axis", "hypothesis")}
    family = str(row.pop("task_id")).rpartition("_")[0]
    return EarlierExperiment.model_validate({**row, **words, "family": family, "simulated": bool(row["simulated"])})


def _text(cell: Cell) -> str | None:
    return None if cell is None else str(cell)


def best_kernel(history: sqlite3.Connection, task: Task) -> BestKernel | None:
    """Return the best active kernel on this processor in this type: at this shape, otherwise at another."""
    shape = canonical(task.shape).decode()
    names = {"op": task.op, "gpu": task.target.gpu, "dtype": task.dtype, "language": task.language, "shape": shape}
    row = history.execute(BEST, names).fetchone()
    if row is None:
        return None
    kernel_id, candidate, language, same_shape, ratio, low, high, baseline, median_ns, floor, promoted, timed = row
    return BestKernel(
        kernel_id=kernel_id,
        candidate=candidate,
        language=language,
        same_shape=bool(same_shape),
        speedup=Interval(ratio=ratio, low=low, high=high),
        baseline=baseline,
        median_us=round(median_ns / 1e3, 3),
        floor_fraction=floor,
        promoted_seq=promoted,
        benchmark_seq=timed,
    )
