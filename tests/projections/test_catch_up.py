"""Rebuilding from zero and catching up give the same bytes, whatever the history and wherever it was cut."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.errors import LedgerCorrupt
from forge.projections import runs
from forge.projections.catch_up import FILE, built, catch_up, read_cursor
from forge.projections.sqlite_file import connect
from tests.projections.histories import (
    LEDGER_ID,
    Head,
    History,
    Past,
    asked,
    deprecate,
    head_of,
    opened,
    past,
    promoted,
    rebuild,
    rendered,
)
from tests.projections.histories import (
    grown_by as grow,
)
from tests.projections.values import task

Act = tuple[str, int]
ACTS = st.tuples(
    st.sampled_from(["promote", "promote", "deprecate", "revoke", "invalidate", "fail", "abandon"]),
    st.integers(0, 99),
)


def grown(acts: list[Act]) -> History:
    history = opened()
    for act, choice in acts:
        grow(history, act, choice)
    return history


def entries(history: History, length: int | None = None) -> dict[str, dict]:
    events = history.events[:length]
    files = rebuild(events, head_of(events))
    return {entry["kernel_id"]: entry for entry in json.loads(files["verified_kernels.json"])["kernels"]}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(acts=st.lists(ACTS, max_size=8), data=st.data())
def test_catching_up_from_any_cut_equals_a_rebuild_as_bytes(acts, data, tmp_path_factory):
    history = grown(acts)
    cuts = sorted(data.draw(st.lists(st.integers(1, len(history.events)), max_size=4)))
    path = tmp_path_factory.mktemp("cuts") / FILE
    for number, cut in enumerate([*cuts, len(history.events)]):
        early = history.events[:cut]
        cursor, anew = catch_up(path, past(early))
        assert anew == (number == 0)
        with closing(connect(path, read_only=True)) as connection:
            assert rendered(connection, cursor) == rebuild(early, head_of(early))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=5), others=st.lists(ACTS, max_size=5), data=st.data())
def test_a_ledger_that_was_replaced_or_cut_off_forces_a_rebuild(acts, others, data, tmp_path_factory):
    first, second = grown(acts), grown([*others, ("abandon", 98)])
    cut = data.draw(st.integers(1, len(first.events) - 1))
    path = tmp_path_factory.mktemp("replaced") / FILE
    catch_up(path, past(first.events))
    for events, ledger_id in ((first.events[:cut], LEDGER_ID), (second.events, LEDGER_ID), (second.events, "other")):
        cursor, anew = catch_up(path, past(events, ledger_id))
        forked = ledger_id != LEDGER_ID or len(events) < cut or events[cut - 1] != first.events[cut - 1]
        assert anew or not forked
        with closing(connect(path, read_only=True)) as connection:
            assert rendered(connection, cursor) == rebuild(events, head_of(events), ledger_id)


@settings(max_examples=30, deadline=None)
@given(acts=st.lists(ACTS, max_size=8))
def test_the_table_of_runs_says_what_the_phases_go_by(acts):
    history = grown(acts)
    folded = runs.fold(runs.EMPTY, history.events).runs.values()
    shown = asked(history, "SELECT run_id, state, sealed, verify_attempts, last_seq FROM runs ORDER BY started_seq")
    expected = [(run.run_id, run.state, run.sealed, run.attempts.verify, run.last_seq) for run in folded]
    assert shown == expected


@settings(max_examples=30, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=6), data=st.data())
def test_the_ids_of_a_prefix_never_change_as_the_log_grows(acts, data):
    history = grown(acts)
    early = entries(history, data.draw(st.integers(1, len(history.events))))
    late = entries(history)
    assert early.keys() <= late.keys()
    assert all(early[kernel_id]["candidate"] == late[kernel_id]["candidate"] for kernel_id in early)
    assert all(early[kernel_id]["files"] == late[kernel_id]["files"] for kernel_id in early)


@settings(max_examples=30, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=5), others=st.integers(1, 3))
def test_unrelated_families_leave_other_kernels_entries_equal(acts, others):
    history = grown(acts)
    before = entries(history)
    for number in range(others):
        promoted(history, wanted=task(op="layernorm", gpu="rtx4070"), name=f"unrelated {number}")
    after = entries(history)
    assert {kernel_id: after[kernel_id] for kernel_id in before} == before
    assert len(after) == len(before) + others


def test_a_broken_event_leaves_what_was_before_it(tmp_path):
    history = grown([("promote", 1)])
    early = past(history.events)
    catch_up(tmp_path / FILE, early)
    deprecate(history, "never_promoted_v1")
    with pytest.raises(LedgerCorrupt, match="never_promoted_v1"):
        catch_up(tmp_path / FILE, past(history.events))
    cursor, anew = catch_up(tmp_path / FILE, early)
    assert not anew
    with closing(connect(tmp_path / FILE, read_only=True)) as connection:
        assert rendered(connection, cursor) == rebuild(early.events, early.head)


@pytest.mark.parametrize("skip", [0, 1])
def test_a_missing_or_repeated_event_is_refused(skip, tmp_path):
    history = grown([("promote", 1)])
    catch_up(tmp_path / FILE, past(history.events[:3]))

    class Odd(Past):
        def lines(self, after_seq):
            assert after_seq == 3
            yield from super().lines(2 if skip == 0 else 4)

    with pytest.raises(LedgerCorrupt, match="expected 4"):
        catch_up(tmp_path / FILE, Odd(history.events, history.head))


def test_nothing_is_written_unless_the_events_end_at_the_head(tmp_path):
    history = grown([("promote", 1)])
    head = history.head
    for wrong in (Past(history.events[:-1], head), Past(history.events, Head(head.seq, "0" * 64))):
        with pytest.raises(LedgerCorrupt, match="head"):
            catch_up(tmp_path / FILE, wrong)
        assert not (tmp_path / FILE).exists()


def test_what_was_appended_after_the_head_was_taken_is_left_for_next_time(tmp_path):
    history = grown([("promote", 1)])
    head = history.head
    early = rebuild(history.events, head)
    grow(history, "revoke", 0)
    assert rebuild(history.events, head) == early
    catch_up(tmp_path / FILE, Past(history.events, head))
    cursor, anew = catch_up(tmp_path / FILE, past(history.events))
    assert not anew
    with closing(connect(tmp_path / FILE, read_only=True)) as connection:
        assert rendered(connection, cursor) == rebuild(history.events, history.head)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not a database" * 1000),
        lambda path: path.write_bytes(path.read_bytes()[: 9 * 4096]),
        lambda path: _sql(path, "DELETE FROM cursor"),
        lambda path: _sql(path, "UPDATE cursor SET projector_version = 0"),
        lambda path: _sql(path, "UPDATE cursor SET event_hash = 'x'"),
        lambda path: _sql(path, "DROP TABLE kernels"),
    ],
)
def test_tables_that_cannot_be_gone_on_with_are_built_anew(spoil, tmp_path):
    history = grown([("promote", 1)])
    catch_up(tmp_path / FILE, past(history.events))
    grow(history, "promote", 2)
    spoil(tmp_path / FILE)
    cursor, anew = catch_up(tmp_path / FILE, past(history.events))
    assert anew
    with closing(connect(tmp_path / FILE, read_only=True)) as connection:
        assert rendered(connection, cursor) == rebuild(history.events, history.head)


def _sql(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_rebuild_leaves_nothing_beside_it(tmp_path):
    history = grown([("promote", 1)])
    with built(tmp_path, past(history.events)):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_few_rows_held_at_a_time_or_all_of_them_give_the_same_bytes(monkeypatch, rows):
    history = grown([("promote", 1), ("fail", 2), ("invalidate", 0), ("promote", 6), ("revoke", 1)])
    whole = rebuild(history.events, history.head)
    monkeypatch.setattr("forge.projections.state.HELD_ROWS", rows)
    assert rebuild(history.events, history.head) == whole


def test_the_cursor_of_another_projector_is_none(tmp_path):
    history = grown([("promote", 1)])
    catch_up(tmp_path / FILE, past(history.events))
    with closing(connect(tmp_path / FILE, read_only=True)) as connection:
        assert read_cursor(connection).seq == history.head.seq
    _sql(tmp_path / FILE, "UPDATE cursor SET schema_version = 1")
    with closing(connect(tmp_path / FILE, read_only=True)) as connection:
        assert read_cursor(connection) is None


def test_kernels_are_listed_by_name_whatever_the_order_of_their_promotion():
    history = grown([("promote", 2), ("promote", 3), ("promote", 0)])
    files = rebuild(history.events, history.head)
    snapshot = next(content for name, content in files.items() if name.startswith("lookup-"))
    for content in (snapshot, files["verified_kernels.json"]):
        listed = [entry["kernel_id"] for entry in json.loads(content)["kernels"]]
        assert len(listed) == 3
        assert listed == sorted(listed)


def test_a_snapshot_keeps_its_name_while_the_registry_stays_the_same():
    history = grown([("promote", 1)])
    before = rebuild(history.events, history.head)
    grow(history, "abandon", 2)
    after = rebuild(history.events, history.head)
    assert {name for name in before if name.startswith("lookup-")} <= after.keys()
    assert before["current.json"] != after["current.json"]


SOME_ACTS = [("promote", 3), ("promote", 1), ("fail", 2), ("deprecate", 0), ("promote", 6), ("revoke", 2)]
SCRIPT = """
from hashlib import sha256
from tests.projections.histories import rebuild
from tests.projections.test_catch_up import SOME_ACTS, grown
history = grown(SOME_ACTS)
for name, content in sorted(rebuild(history.events, history.head).items()):
    print(name, sha256(content).hexdigest())
"""


def test_hash_seed_and_time_zone_change_no_byte():
    settings_tried = [("0", "UTC"), ("1", "Asia/Kathmandu"), ("random", "America/St_Johns")]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            stdout=subprocess.PIPE,
        )
        for seed, zone in settings_tried
    ]
    printed = {process.communicate()[0] for process in running}
    assert all(process.returncode == 0 for process in running)
    assert len(printed) == 1
    history = grown(SOME_ACTS)
    files = rebuild(history.events, history.head)
    here = [f"{name} {sha256(content).hexdigest()}" for name, content in sorted(files.items())]
    assert printed.pop().decode().split("\n")[:-1] == here


@pytest.mark.parametrize("changes", [{"workloads": [{}]}, {"workloads": None}])
def test_content_that_no_event_has_is_named_and_no_crash(changes, tmp_path):
    """Folds take payloads as they are stored: a forger's may hold anything."""
    history = opened()
    promoted(history)

    class Forged(Past):
        def lines(self, after_seq):
            for line in super().lines(after_seq):
                yield line._replace(event=line.event | changes) if line.type == "BenchmarkRecorded" else line

    source = Forged(list(history.events), head_of(history.events))
    with pytest.raises(LedgerCorrupt, match="content that can't be folded"), built(tmp_path, source):
        pass
