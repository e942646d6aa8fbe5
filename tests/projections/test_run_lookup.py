"""One run of a ledger that holds others too."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forge.errors import LedgerCorrupt, RunNotFound
from forge.ledger.store import Ledger
from forge.projections import runs
from forge.projections.run_lookup import experiments, find_run
from tests.projections.histories import Run, opened
from tests.projections.test_real_ledger import new_ledger
from tests.projections.values import task


def three_runs(ledger: Ledger) -> list[str]:
    """Two runs of one task and one of another, each event correlated with its run; the runs take turns."""
    history = opened()
    made = [
        Run(history, task(op=op), name).start() for op, name in (("rmsnorm", "a"), ("rmsnorm", "b"), ("gelu", "c"))
    ]
    for run in made:
        run.submit().claim(2.0, "overstated")
    for run in made:
        run.verify()
    made[0].benchmark().promote()
    made[1].fail("TOO_SLOW")
    seen = ""
    for recorded in history.events[1:]:
        seen = runs.run_of(recorded.event) or seen or made[0].run_id
        ledger.append([recorded.event], actor="ci:test", correlation_id=seen)
    return [run.run_id for run in made]


def test_a_run_read_alone_is_the_run_that_the_whole_history_gives(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "kernel_registry.db") as ledger:
        with pytest.raises(RunNotFound, match="no run yet"):
            find_run(ledger, "last")
        made = three_runs(ledger)
        whole = runs.fold(runs.EMPTY, ledger.read())
        assert [find_run(ledger, run_id) for run_id in made] == [whole.runs[run_id] for run_id in made]
        assert find_run(ledger, "last") == whole.runs[made[-1]]
        assert [find_run(ledger, f"last-{place}").run_id for place in (0, 1, 2)] == made[::-1]
        with pytest.raises(RunNotFound, match="there are 3 runs, expected `last` to `last-2`"):
            find_run(ledger, "last-3")
        assert find_run(ledger, made[2][:-3]) == whole.runs[made[2]]
        for name in ("2026", "nothing", "", "%", "last-", "last-\u0661", "last--1", "last-9999999999", "\U0010ffff"):
            with pytest.raises(RunNotFound):
                find_run(ledger, name)
        assert [experiments(ledger, one.task_id) for one in whole.runs.values()] == [2, 2, 1]


def test_other_runs_arent_read(tmp_path: Path) -> None:
    """A reader of another run's payload would stop at it."""
    path = tmp_path / "kernel_registry.db"
    with new_ledger(path) as ledger:
        first, _, last = three_runs(ledger)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TRIGGER event_refuses_update")
            connection.execute("UPDATE event SET payload = '{}' WHERE correlation_id = ? AND type != 'x'", (first,))
            connection.commit()
        assert find_run(ledger, last).run_id == last
        assert find_run(ledger, "last").run_id == last
        with pytest.raises(LedgerCorrupt):
            find_run(ledger, first)
