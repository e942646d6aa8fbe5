"""What hiding undecided runs costs a question, and that what is hidden are their figures alone."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from forge.app.audit.authors import EXPERIMENTS
from forge.app.runs.states import ENDS
from forge.app.stored.hide_undecided import hide_undecided
from forge.projections.catch_up import built
from forge.projections.sqlite_file import connect
from tests.projections.histories import History, Run, opened, past
from tests.projections.values import task

ASKED = {"text": None, "axis": None, "layer": None, "ended": None, "limit": 5}
SPEEDS = "SELECT candidate, measurements, speedup FROM latest_speedups ORDER BY candidate"
STEPS = 100
"""Instructions of SQLite's machine between two calls of the counter: a round number, far below what a query takes."""


def timed(history: History, name: str, *, decided: bool, ratio: float = 1.5) -> Run:
    run = Run(history, task(), name).start().submit().verify().benchmark(ratio=ratio)
    if decided:
        run.promote()
    return run


@contextmanager
def hidden(history: History) -> Iterator[tuple[sqlite3.Connection, list[int]]]:
    """The tables without the figures of undecided runs, and the instructions so far, in hundreds."""
    taken: list[int] = []
    with (
        TemporaryDirectory() as folder,
        built(Path(folder), past(history.events)) as (path, _),
        closing(connect(path, read_only=True)) as connection,
    ):
        connection.set_progress_handler(lambda: taken.append(1), STEPS)
        hide_undecided(connection, ENDS)
        yield connection, taken


def cost(undecided: int) -> int:
    """Hundreds of instructions to hide these runs, and to read five experiments."""
    history = opened()
    for number in range(undecided):
        timed(history, f"open {number}", decided=False)
    for number in range(8):
        timed(history, f"decided {number}", decided=True)
    with hidden(history) as (connection, taken):
        found = connection.execute(EXPERIMENTS.format(condition="1"), ASKED).fetchall()
        assert len(found) == 5
        return len(taken)


def test_a_question_for_few_rows_costs_the_same_however_many_runs_are_undecided() -> None:
    assert cost(160) <= 2 * max(cost(20), 10)


def test_bytes_that_were_measured_in_a_decided_run_keep_that_speed_alone() -> None:
    history = opened()
    both = Run(history, task(), "both").start().submit().verify().benchmark(ratio=1.5)
    both.promote()
    alone = timed(history, "alone", decided=False)
    again = Run(history, task(gpu="h100"), "both").start().submit().verify().benchmark(ratio=3.0)
    assert both.candidate == again.candidate
    with hidden(history) as (connection, _):
        found = connection.execute(SPEEDS).fetchall()
        assert [one[:2] for one in found] == [(both.candidate.sha256, 1)], "a count would tell of the other run"
        assert found[0][2] == 1.5
        assert alone.candidate.sha256 not in str(connection.execute("SELECT * FROM benchmarks").fetchall())
