"""Writers killed at any moment and at every system call: nothing acknowledged is lost, no batch is torn."""

import statistics
from pathlib import Path

import pytest

from forge.ledger.batch import Batch
from tests.ledger.suites.ledgers import duplicated, opened
from tests.ledger.suites.reports import killed
from tests.ledger.suites.sizes import LONG, rounds

REOPEN_GOAL_MS = 50.0


def test_writers_killed_at_any_moment_lose_nothing_they_acknowledged(path: Path, tmp_path: Path) -> None:
    kills = rounds(20, long=700)
    report = killed("moments", path, tmp_path / "killed", kills)
    assert report["kills"] == kills
    assert report["acknowledged"] > kills, "killed before they had written anything"


def test_a_writer_killed_at_any_system_call_loses_nothing_it_acknowledged(path: Path, tmp_path: Path) -> None:
    kills = rounds(10, long=1000)
    report = killed("boundaries", path, tmp_path / "killed", kills)
    assert report["boundaries"] > 100
    assert report["kills"] == min(kills, report["boundaries"])


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="a hundred thousand events take a while to write: FORGE_TEST_LONG=1")
def test_a_large_ledger_is_there_again_at_once(path: Path, tmp_path: Path) -> None:
    with opened(path) as ledger:
        for first in range(0, 100_000, 1000):
            ledger.append_many(
                [
                    Batch(
                        events=[duplicated(number, candidate=str(number % 500))],
                        actor="cli:ada",
                        correlation_id="fill",
                    )
                    for number in range(first, first + 1000)
                ]
            )
    report = killed("reopening", path, tmp_path / "killed", 200)
    assert report["events"] > 100_000
    assert statistics.median(report["reopen_ms"]) <= REOPEN_GOAL_MS
