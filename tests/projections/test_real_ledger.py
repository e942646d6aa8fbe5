"""A real ledger's events, written to disk and read back, project as they should."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forge.ledger.store import Ledger
from forge.lookup import Registry
from forge.projections import runs
from forge.projections.catch_up import catch_up, rebuild, render
from forge.projections.folds import EMPTY
from forge.projections.publish import publish
from tests.projections.histories import LEDGER_ID, benchmarked, opened, promoted, revoke
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
    with new_ledger(tmp_path / "kernel_registry.db") as ledger:
        events = [recorded.event for recorded in history.events[1:]]
        ledger.append(events[:9], actor="ci:test", correlation_id="run")
        folds = catch_up(EMPTY, ledger.read())
        ledger.append(events[9:], actor="ci:test", correlation_id="run")
        head = ledger.head
        files = rebuild(ledger.read(), head, ledger.ledger_id)
        caught_up = render(catch_up(folds, ledger.read(after_seq=folds.seq)), head, ledger.ledger_id)
        state = runs.fold(runs.EMPTY, ledger.read())
    assert files == caught_up
    assert [run.state for run in state.runs.values()] == ["promoted"] * 3
    document = json.loads(files["verified_kernels.json"])
    assert document["ledger"] == {"ledger_id": LEDGER_ID, "seq": head.seq, "event_hash": head.event_hash}
    publish(tmp_path / "kernel_registry", files)
    found = Registry.open(tmp_path).lookup(op="rmsnorm", gpu="h200", dtype="bf16", shape=SHAPE)
    assert found.kernel.kernel_id == second
    assert found.rejected == [(first, "revoked: wrong_result: off by one")]
