"""A verification finds an event that its own run contradicts, whatever hashes and signatures say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forge.app.ledger.ledger_answers import verify_ledger
from tests.cli.asking import built_once, copied
from tests.ledger.edits.base import build
from tests.ledger.edits.copy import Copy
from tests.ledger.test_forged_sessions import altered, changed

OTHER = "ab" * 32


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, "edits_base", build)


@pytest.fixture
def copy(base: Path, tmp_path: Path) -> Copy:
    return Copy(copied(base, tmp_path / "home"))


def after_the_seal(copy: Copy) -> None:
    copy.append_again("BenchmarkRecorded", changed(attempt=2))


FORGED: dict[str, tuple[Callable[[Copy], None], str]] = {
    "a run for another task": (altered("RunStarted", task_id="another"), "but run"),
    "a candidate for another task": (altered("CandidateSubmitted", task_id="another"), "task 'another'"),
    "a baseline of an unknown machine": (altered("BaselineRecorded", env_sha256=OTHER), "machine"),
    "a benchmark on another verification": (altered("BenchmarkRecorded", verified_seq=1), "verification 1"),
    "a benchmark of a run that was sealed": (after_the_seal, "had been sealed"),
}


def complaints(copy: Copy) -> list[str]:
    copy.write([row for row in copy.rows() if row.type not in ("CheckpointPublished", "LedgerKeyRotated")])
    copy.unpublish()
    problems = verify_ledger(copy.home)["problems"]
    assert isinstance(problems, list)
    return [one["found"] for one in problems if one["what"] == "what its run says"]


def test_an_honest_run_contradicts_nothing(copy: Copy) -> None:
    assert complaints(copy) == []


@pytest.mark.parametrize("case", FORGED)
def test_what_its_run_contradicts_is_found(case: str, copy: Copy) -> None:
    act, said = FORGED[case]
    act(copy)
    found = complaints(copy)
    assert any(said in one for one in found), found
