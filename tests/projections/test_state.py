"""Rows that a fold holds in memory say what the file says."""

from contextlib import closing
from pathlib import Path

from forge.projections.schema import tables
from forge.projections.sqlite_file import create
from forge.projections.state import State


def test_a_benchmark_that_was_withdrawn_is_read_as_withdrawn(tmp_path: Path) -> None:
    numbers = {"seq": 7, "line": 0}
    row = {column: numbers.get(column, "x") for column in tables()["benchmarks"].columns} | {"invalidated_seq": None}
    with closing(create(tmp_path / "history.db")) as connection:
        state = State(connection)
        state.put("benchmarks", row, 7, 0)
        state.mark_invalidated(7, 9)
        found = state.get("benchmarks", 7, 0)
        assert found is not None
        assert found["invalidated_seq"] == 9


def test_a_row_that_was_written_is_the_one_that_is_asked_for_again(tmp_path: Path) -> None:
    with closing(create(tmp_path / "history.db")) as connection:
        state = State(connection)
        state.put("tasks", dict.fromkeys(tables()["tasks"].columns, "x") | {"seq": 1}, "x")
        for seq in (2, 3):
            state.flush()
            found = state.get("tasks", "x")
            assert found is not None
            state.put("tasks", {**found, "seq": seq}, "x")
        state.flush()
        assert connection.execute("SELECT seq FROM tasks").fetchall() == [(3,)]
