"""The audit database: its rows, and its bytes."""

import sqlite3
from contextlib import closing

import pytest
from sqlmodel import SQLModel

from forge.domain.verdict import Reason
from forge.events.candidate import CandidateRejected
from forge.events.run import RunAborted
from forge.projections import history, registry, tables
from forge.projections.fold import Position
from forge.projections.sqlite_file import sqlite_file
from tests.projections.histories import History, Run, invalidate, opened, promoted
from tests.projections.values import EDGES, digest, environment, task


def rendered(past: History) -> bytes:
    states = history.fold(history.EMPTY, past.events), registry.fold(registry.EMPTY, past.events)
    return history.render(*states, Position("ledger", past.head.seq, past.head.event_hash))


def asked(past: History, query: str) -> list[tuple]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(rendered(past))
        return connection.execute(query).fetchall()


@pytest.fixture
def eventful() -> History:
    """One of everything that leaves a row."""
    past = opened()
    promoted(past, also=(EDGES[0],))
    run = Run(past, task(op="softmax"), "b").start().submit().claim(3.0, "overstated")
    run.verify().fail("NOISE_TOO_HIGH", measured=False).fail("TOO_SLOW")
    other = Run(past, task(op="softmax"), "c").start().submit().claim(1.5)
    reason = Reason(code="INCORRECT_NUMERICAL", message="row 3")
    past.add(CandidateRejected(**other.ids, stage="verify", reason=reason))
    past.add(RunAborted(run_id=other.run_id, reason="cancelled"))
    return past


def test_a_benchmark_leaves_one_row_per_workload_and_baseline(eventful):
    rows = asked(
        eventful,
        "SELECT line, op, gpu, dtype, shape, baseline, baseline_used, verdict, reason_code, speedup"
        " FROM benchmarks ORDER BY seq, line",
    )
    slot = ("h200", "bf16")
    measured = '{"batch":16,"hidden_size":4096}'
    assert rows == [
        (1, "rmsnorm", *slot, measured, "eager", 1, "accepted", None, 1.5),
        (2, "rmsnorm", *slot, '{"batch":1,"hidden_size":4096}', "eager", 1, "accepted", None, 1.5),
        (1, "softmax", *slot, None, None, None, "inconclusive", "NOISE_TOO_HIGH", None),
        (1, "softmax", *slot, measured, "eager", 1, "rejected", "TOO_SLOW", 0.9),
    ]


def test_a_benchmark_row_names_the_machine_it_was_measured_on(eventful):
    found = environment()
    rows = asked(eventful, "SELECT DISTINCT perf_key, driver, torch, triton FROM benchmarks")
    assert rows == [(found.perf_key, found.driver, found.torch, found.triton)]


def test_an_invalidated_benchmark_says_by_which_event(eventful):
    (seq,) = asked(eventful, "SELECT DISTINCT seq FROM benchmarks WHERE verdict = 'accepted'")[0]
    invalidate(eventful, seq)
    rows = asked(eventful, "SELECT DISTINCT invalidated_seq FROM benchmarks WHERE verdict = 'accepted'")
    assert rows == [(eventful.head.seq,)]
    assert asked(eventful, "SELECT status FROM kernels") == [("evidence_invalid",)]


def test_refusals_of_every_phase_are_listed_with_their_reason(eventful):
    assert asked(eventful, "SELECT stage, verdict, reason_code FROM rejections ORDER BY seq") == [
        ("benchmark", "inconclusive", "NOISE_TOO_HIGH"),
        ("benchmark", "rejected", "TOO_SLOW"),
        ("verify", "rejected", "INCORRECT_NUMERICAL"),
    ]


def test_a_claim_stands_beside_what_was_measured_or_stays_open(eventful):
    rows = asked(eventful, "SELECT claimed, measured, verdict FROM claims ORDER BY seq")
    assert rows == [(3.0, 1.5, "overstated"), (1.5, None, None)]


def test_a_run_row_says_how_far_it_came(eventful):
    rows = asked(
        eventful,
        "SELECT state, sealed, outcome, verify_attempts, benchmark_attempts FROM runs ORDER BY started_seq",
    )
    assert rows == [
        ("promoted", 1, "promoted", 1, 1),
        ("failed", 0, None, 1, 2),
        ("aborted", 0, "cancelled", 1, 0),
    ]


def test_the_cursor_names_the_head_and_the_versions(eventful):
    rows = asked(eventful, "SELECT ledger_id, seq, event_hash, schema_version, projector_version FROM cursor")
    head = eventful.head
    assert rows == [
        ("ledger", head.seq, head.event_hash, tables.SCHEMA_VERSION, history.PROJECTOR_VERSION),
    ]


def test_two_builds_have_equal_bytes_and_form_a_sound_database(eventful):
    assert rendered(eventful) == rendered(eventful)
    assert asked(eventful, "PRAGMA integrity_check") == [("ok",)]
    assert asked(eventful, "PRAGMA user_version") == [(tables.SCHEMA_VERSION,)]


def test_the_file_can_be_read_where_nothing_can_be_written(eventful, tmp_path):
    path = tmp_path / "history.db"
    path.write_bytes(rendered(eventful))
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM kernels").fetchone() == (1,)


def test_an_empty_history_has_every_table():
    names = {name for (name,) in asked(opened(), "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names == set(tables.TABLES.metadata.tables)


def test_every_row_has_exactly_the_columns_of_its_table(eventful):
    states = history.fold(history.EMPTY, eventful.events), registry.fold(registry.EMPTY, eventful.events)
    for name, rows in history.rows(*states).items():
        columns = set(tables.TABLES.metadata.tables[name].columns.keys())
        assert rows
        assert all(set(row) == columns for row in rows), name


def test_a_missing_column_or_table_is_a_loud_mistake():
    with pytest.raises(KeyError):
        sqlite_file(tables.TABLES.metadata, {}, version=1)
    rows = {name: [] for name in tables.TABLES.metadata.tables} | {"cursor": [{"seq": 1}]}
    with pytest.raises(sqlite3.Error):
        sqlite_file(tables.TABLES.metadata, rows, version=1)


def test_migrations_of_the_ledger_never_see_these_tables():
    assert not set(tables.TABLES.metadata.tables) & set(SQLModel.metadata.tables)


def test_the_tables_are_loaded_only_when_the_file_is_written():
    import subprocess
    import sys

    code = "import sys, forge.projections.catch_up, forge.projections.runs; print('sqlmodel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


def test_candidates_keep_their_author_and_place():
    past = opened()
    promoted(past)
    rows = asked(past, "SELECT candidate, author, language, actor FROM candidates")
    assert [row[1:] for row in rows] == [("an author", "triton", "ci:test")]
    assert digest("x") not in rows[0]
