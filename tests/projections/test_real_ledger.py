"""A real ledger's events, written to disk and read back, project as they should."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forge.errors import LedgerCorrupt
from forge.ledger.store import Ledger
from forge.lookup import Registry
from forge.projections import runs
from forge.projections.publish import publish, republish
from forge.projections.source import LedgerSource
from tests.projections.histories import LEDGER_ID, benchmarked, opened, promoted, rebuild, revoke
from tests.projections.values import SHAPE, task


def counting_ids():
    numbers = iter(range(1, 10_000))
    return lambda: f"0190aaaa-0000-7000-8000-{next(numbers):012x}"


def new_ledger(path: Path) -> Ledger:
    moments = iter(datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=number) for number in range(10_000))
    return Ledger.create(
        path,
        ledger_id=LEDGER_ID,
        origin="test",
        forge_version="0.1.0",
        now=lambda: next(moments),
        new_id=counting_ids(),
    )


def test_what_the_store_hands_out_is_folded_published_and_answered(tmp_path):
    history = opened()
    first = promoted(history, name="a", median_ns=100.0)
    second = benchmarked(history, name="b", median_ns=200.0).promote()
    promoted(history, name="c", wanted=task(op="softmax"))
    revoke(history, first)
    root = tmp_path / "kernel_registry"
    with new_ledger(tmp_path / "kernel_registry.db") as ledger:
        events = [recorded.event for recorded in history.events[1:]]
        for batch in (events[:9], events[9:]):
            ledger.append(batch, actor="ci:test", correlation_id="run")
            publish(root, lambda: LedgerSource(ledger))
        stored = list(ledger.read())
        files = rebuild(stored, ledger.head)
        compared = republish(root, lambda: LedgerSource(ledger))
        state = runs.fold(runs.EMPTY, ledger.read())
    assert {one.state for one in compared} == {"identical"}
    del files["tables"]
    assert {name: (root / name).read_bytes() for name in files} == files
    assert [run.state for run in state.runs.values()] == ["promoted"] * 3
    newest = stored[-1]
    assert json.loads(files["verified_kernels.json"])["ledger"] == {
        "ledger_id": LEDGER_ID,
        "seq": newest.seq,
        "event_hash": newest.event_hash,
    }
    found = Registry.open(tmp_path).lookup(op="rmsnorm", gpu="h200", dtype="bf16", shape=SHAPE)
    assert found.kernel.kernel_id == second
    assert found.rejected == [(first, "revoked: wrong_result: off by one")]


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        ("UPDATE event SET payload = replace(payload, 'an author', 'a friend') WHERE seq = 4", "payload of event 4"),
        ("UPDATE event SET type = 'KernelBlessed' WHERE seq = 3", "KernelBlessed"),
        ("UPDATE event SET schema_version = 9 WHERE seq = 3", "v9"),
        ("DELETE FROM event WHERE seq = 5", "event 5 is missing"),
    ],
)
def test_an_edited_ledger_is_not_folded(tmp_path, edit, complaint):
    history = opened()
    promoted(history)
    with new_ledger(tmp_path / "ledger.db") as ledger:
        ledger.append([one.event for one in history.events[1:]], actor="ci:test", correlation_id="run")
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(edit)
            connection.commit()
        with pytest.raises(LedgerCorrupt, match=complaint):
            publish(tmp_path / "kernel_registry", lambda: LedgerSource(ledger))
    assert not (tmp_path / "kernel_registry" / "current.json").exists()
