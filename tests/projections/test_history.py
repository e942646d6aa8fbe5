"""The audit database: its rows, and its bytes."""

import math
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from forge.domain.digest import sha256
from forge.domain.evidence import GateResult
from forge.domain.verdict import Reason
from forge.events.candidate import CandidateRejected
from forge.events.run import RunAborted
from forge.ledger.table import LedgerTables
from forge.projections import recent_times
from forge.projections.audit_views import VIEWS
from forge.projections.catch_up import FILE, catch_up
from forge.projections.history_version import PROJECTOR_VERSION, SCHEMA_VERSION
from forge.projections.schema import creations, tables
from tests.projections.histories import (
    LEDGER_ID,
    History,
    Run,
    asked,
    deprecate,
    invalidate,
    opened,
    past,
    promoted,
    rebuild,
    revoke,
)
from tests.projections.values import EDGES, digest, environment, task


@pytest.fixture
def eventful() -> History:
    """One of everything that leaves a row."""
    history = opened()
    promoted(history, also=(EDGES[0],))
    run = Run(history, task(op="softmax"), "b").start().submit().claim(3.0, "overstated")
    run.verify().fail("NOISE_TOO_HIGH", measured=False).fail("TOO_SLOW")
    other = Run(history, task(op="softmax"), "c").start().submit().claim(1.5)
    reason = Reason(code="INCORRECT_NUMERICAL", message="row 3")
    history.add(CandidateRejected(**other.ids, stage="verify", reason=reason))
    history.add(RunAborted(run_id=other.run_id, reason="cancelled"))
    return history


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


def test_a_trial_that_a_withdrawn_benchmark_decided_counts_as_open(eventful):
    outcome = "SELECT measured, ended, reason FROM outcomes WHERE kernel_id IS NOT NULL"
    experiment = "SELECT ended FROM experiments WHERE op = 'rmsnorm'"
    assert (asked(eventful, outcome), asked(eventful, experiment)) == ([(1, "improved", None)], [("improved",)])
    others = asked(eventful, "SELECT * FROM outcomes WHERE kernel_id IS NULL")
    (seq,) = asked(eventful, "SELECT DISTINCT seq FROM benchmarks WHERE verdict = 'accepted'")[0]
    invalidate(eventful, seq)
    assert (asked(eventful, outcome), asked(eventful, experiment)) == ([(0, None, None)], [])
    assert asked(eventful, "SELECT * FROM outcomes WHERE kernel_id IS NULL") == others


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
        (LEDGER_ID, head.seq, head.event_hash, SCHEMA_VERSION, PROJECTOR_VERSION),
    ]


def test_two_builds_have_equal_content_and_form_a_sound_database(eventful):
    assert rebuild(eventful.events, eventful.head) == rebuild(eventful.events, eventful.head)
    assert asked(eventful, "PRAGMA integrity_check") == [("ok",)]
    assert asked(eventful, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


def test_the_file_can_be_read_where_nothing_can_be_written(eventful, tmp_path):
    path = tmp_path / FILE
    catch_up(path, past(eventful.events))
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM kernels").fetchone() == (1,)


def test_an_empty_history_has_every_table():
    names = {name for (name,) in asked(opened(), "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names == set(tables())


def test_a_changed_table_or_view_has_a_new_schema_version():
    written = "\n".join((*creations("TABLE"), *creations("INDEX"), *(f"{name} {VIEWS[name]}" for name in VIEWS)))
    assert (SCHEMA_VERSION, sha256(written.encode())) == (
        12,
        "28df812c45a6327156a39788e57c20b8d1c3c639b66a04a844526deb23b1a8d0",
    ), "meant? raise SCHEMA_VERSION, and write both here"


def test_comments_of_the_tables_are_left_out():
    assert not [one for one in (*creations("TABLE"), *creations("INDEX")) if "--" in one]


def test_statements_name_the_columns_and_keys_of_a_table():
    assert tables()["invalidations"] == ("invalidations", ("benchmark_seq", "seq", "why"), ("benchmark_seq",))
    assert tables()["benchmarks"].key == ("seq", "line")


def test_publishing_loads_no_sqlmodel():
    code = "import sys, forge.app.stored.publication; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "sqlite3" in loaded
    assert not {"sqlmodel", "sqlalchemy"} & set(loaded)


def test_migrations_of_the_ledger_never_see_these_tables():
    assert not set(tables()) & set(LedgerTables.metadata.tables)


def test_a_geometric_mean_follows_what_is_recorded_and_withdrawn():
    history = opened()
    first = promoted(history, name="a", ratio=1.5)
    promoted(history, name="b", ratio=2.0, also=(EDGES[0],))
    Run(history, task(), "c").start().submit().verify().fail("TOO_SLOW")
    query = "SELECT op, gpu, dtype, measurements, round(geomean, 9) FROM speedups"
    assert asked(history, query) == [("rmsnorm", "h200", "bf16", 3, round((1.5 * 2 * 2) ** (1 / 3), 9))]
    invalidate(history, dict(asked(history, "SELECT kernel_id, benchmark_seq FROM kernels"))[first])
    assert asked(history, query) == [("rmsnorm", "h200", "bf16", 2, 2.0)]


def test_a_kernel_that_became_slower_on_its_machine_shows_as_a_regression():
    history = opened()
    run = Run(history, task(), "a").start().submit().verify().benchmark(median_ns=1000.0)
    slowed = run.promote()
    promoted(history, name="steady")
    for number in range(19):
        run.benchmark(median_ns=1000.0 if number < 9 else 1300.0)
    assert asked(history, "SELECT kernel_id, earlier_ns, newest_ns, slower FROM regressions") == [
        (slowed, 1000.0, 1300.0, 1.3)
    ]


def test_what_became_slower_follows_measurements_one_by_one(tmp_path):
    """What is derived for the kernels that an event is about equals what is derived for all of them."""
    history = opened()
    run = Run(history, task(), "a").start().submit().verify().benchmark(median_ns=1000.0)
    kernel_id = run.promote()
    promoted(history, name="steady")
    path = tmp_path / FILE
    for number in range(24):
        run.benchmark(median_ns=1000.0 + 3.7 * number)
        if number % 6 == 5:  # withdraws one of the newest ten
            invalidate(history, history.head.seq - 3)
        if number % 4 == 3:
            run.fail("TOO_SLOW")
        catch_up(path, past(history.events))
        with closing(sqlite3.connect(path)) as connection:
            shown = connection.execute("SELECT * FROM recent_times ORDER BY kernel_id").fetchall()
        assert shown == asked(history, "SELECT * FROM recent_times ORDER BY kernel_id")
        assert shown == expected_times(history)
    assert [name for (name,) in asked(history, "SELECT kernel_id FROM regressions")] == [kernel_id]


def expected_times(history: History) -> list[tuple]:
    """By the definition: the mean of the newest ten that count, beside that of the ten before."""
    found = []
    for kernel_id, shape, perf_key, candidate in asked(
        history, "SELECT kernel_id, shape, perf_key, candidate FROM kernels ORDER BY kernel_id"
    ):
        times = [
            time
            for name, time in asked(
                history,
                "SELECT candidate, candidate_median_ns FROM benchmarks"
                " WHERE baseline_used AND invalidated_seq IS NULL ORDER BY seq DESC",
            )
            if name == candidate
        ]
        means = [math.fsum(ten) / len(ten) if ten else None for ten in (times[:10], times[10:20])]
        found.append((kernel_id, shape, perf_key, *means, means[0] / means[1] if means[1] else None))
    return found


def test_so_many_measured_candidates_that_none_is_named_leave_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(recent_times, "NAMED_LIMIT", 3)
    history = opened()
    kernels = [Run(history, task(), str(number)).start().submit().verify().benchmark() for number in range(6)]
    for run in kernels:
        run.promote()
    catch_up(tmp_path / FILE, past(history.events))
    for run in kernels:
        run.benchmark(median_ns=900.0)
    catch_up(tmp_path / FILE, past(history.events))
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        shown = connection.execute("SELECT kernel_id, newest_ns FROM recent_times ORDER BY kernel_id").fetchall()
    assert [mean for _, mean in shown] == [950.0] * 6
    assert shown == asked(history, "SELECT kernel_id, newest_ns FROM recent_times ORDER BY kernel_id")


def test_a_candidates_history_is_answered_from_its_index_in_order(eventful):
    plan = asked(
        eventful,
        "EXPLAIN QUERY PLAN SELECT seq, recorded_at, candidate_median_ns, speedup, low, high FROM benchmarks"
        " WHERE candidate = (SELECT candidate FROM kernels WHERE kernel_id = 'k') ORDER BY seq",
    )
    said = " ".join(str(step[3]) for step in plan)
    assert "COVERING INDEX benchmarks_by_candidate" in said
    assert "TEMP B-TREE" not in said


def test_claims_are_counted_for_each_claimant(eventful):
    rows = asked(eventful, "SELECT claimant, metric, claims, confirmed, overstated, refuted, open FROM claimants")
    assert rows == [("author", "speedup", 2, 0, 1, 0, 1)]


def test_the_trail_of_a_candidate_leads_to_every_event_about_it_and_its_kernel():
    history = opened()
    kernel_id = promoted(history)
    promoted(history, name="other")
    deprecate(history, kernel_id)
    revoke(history, kernel_id)
    query = "SELECT seq FROM trail JOIN kernels USING (candidate) WHERE kernel_id = '" + kernel_id + "' ORDER BY seq"
    types = [history.events[seq - 1].event.TYPE for (seq,) in asked(history, query)]
    assert types == [
        *("CandidateSubmitted", "CandidateVerified", "BenchmarkRecorded", "KernelPromoted"),
        *("KernelDeprecated", "KernelRevoked"),
    ]


def test_a_refusal_names_the_gate_that_failed_first():
    history = opened()
    run = Run(history, task(), "a").start().submit()
    gates = tuple(
        GateResult(name=name, verdict=verdict, observed="1", threshold="0")
        for name, verdict in (("shape", "passed"), ("numerics", "failed"), ("bounds", "failed"))
    )
    reason = Reason(code="INCORRECT_NUMERICAL", message="row 3")
    history.add(CandidateRejected(**run.ids, stage="verify", reason=reason, gates=gates))
    assert asked(history, "SELECT gate, reason_code, op FROM rejections") == [
        ("numerics", "INCORRECT_NUMERICAL", "rmsnorm")
    ]


def test_candidates_keep_their_author_and_place():
    history = opened()
    promoted(history)
    rows = asked(history, "SELECT candidate, author, language, actor FROM candidates")
    assert [row[1:] for row in rows] == [("an author", "triton", "ci:test")]
    assert digest("x") not in rows[0]
