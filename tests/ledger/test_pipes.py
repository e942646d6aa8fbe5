"""A verification of a ledger's files waits for no pipe: it names what stands in the place of a file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.app.ledger.ledger_answers import verify_ledger
from forge.lookup.beside import newest_decision
from tests.cli.asking import ask, built_once, copied
from tests.ledger.edits.base import build
from tests.ledger.edits.copy import Copy

JOURNAL = "kernel_registry.db-journal"


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, "edits_base", build)


@pytest.fixture
def copy(base: Path, tmp_path: Path) -> Copy:
    return Copy(copied(base, tmp_path / "w"))


def samples(copy: Copy) -> Path:
    return copy.blob(copy.payload("BenchmarkRecorded")["workloads"][0]["samples_sha256"])


PLACES: dict[str, Callable[[Copy], Path]] = {
    "raw samples": samples,
    "a report": lambda copy: copy.blob(copy.payload("BenchmarkRecorded")["report_sha256"]),
    "a policy": lambda copy: copy.blob(copy.payload("KernelPromoted")["policy_sha256"]),
    "samples of a run": lambda copy: copy.run_folder / "benchmark_samples.json",
    "a manifest of a run": lambda copy: copy.run_folder / "manifest.json",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_in_the_place_of_evidence_is_named(place: str, copy: Copy) -> None:
    path = PLACES[place](copy)
    path.parent.chmod(0o755)
    path.unlink()
    os.mkfifo(path)
    assert verify_ledger(copy.home, full=True)["problems"]


def test_a_pipe_in_the_place_of_a_journal_is_named_by_readers_and_writers(copy: Copy) -> None:
    os.mkfifo(copy.home / JOURNAL)
    (problem,) = (one for one in verify_ledger(copy.home)["problems"] if one["what"] == "database")
    assert JOURNAL in problem["found"]
    assert newest_decision(str(copy.home)) is None
    refused = ask("ledger", "checkpoint", "--home", copy.home)
    assert refused.status == 1
    assert JOURNAL in refused.error
