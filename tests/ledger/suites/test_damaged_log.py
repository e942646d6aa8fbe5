"""Images of a ledger and its write-ahead log, as a power cut leaves them and as nothing should."""

import random
from collections import Counter
from pathlib import Path

import pytest

from forge.errors import ForgeError
from forge.ledger.audit.history import audit
from tests.ledger.suites.damage import SPOILS, Files, Film, crash_images, filmed, log_of
from tests.ledger.suites.ledgers import fill, opened
from tests.ledger.suites.sizes import rounds

SEED = 20261121


@pytest.fixture(scope="module")
def film(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Film:
    return filmed(finished, tmp_path_factory.mktemp("film"), 24)


def recovered(files: Files, path: Path, film: Film) -> int:
    """How many events come back from an image: a beginning of history in whole batches, on which one can build."""
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()
    files.write(path)
    with opened(path) as ledger:
        head = ledger.head.seq
        assert tuple(row.event_hash for row in ledger.rows()) == film.hashes[:head]
        assert head in film.ends, "half a transaction came back"
        fill(ledger, 1)
    report = audit(path)
    assert report.ok, report.problems
    assert report.events == head + 1
    return head


def test_what_a_power_cut_leaves_gives_back_all_that_was_acknowledged(film: Film, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    found = Counter[str]()
    for _ in range(rounds(40, long=700)):
        image = crash_images(film, rng)
        head = recovered(image.files, tmp_path / "image.db", film)
        assert head >= image.head, "an acknowledged event is lost"
        found["all of it" if head == image.head else "and one transaction more"] += 1
    print(dict(found))
    assert len(found) == 2, "every image came out alike"


@pytest.mark.parametrize("copied", [False, True], ids=["log not yet copied", "log copied"])
def test_a_damaged_log_gives_back_a_beginning_of_history_or_is_refused(
    copied: bool, film: Film, tmp_path: Path
) -> None:
    """With the log copied, the database has pages of later transactions than a damaged log: they mustn't mix."""
    rng = random.Random(SEED + copied)
    found = Counter[str]()
    path = tmp_path / "image.db"
    for number in range(rounds(16, long=200)):
        spoil = SPOILS[number % len(SPOILS)]
        base = film.checkpointed if copied else film.appended[-1].files
        image = Files(base.database, spoil(base.log, rng))
        try:
            head = recovered(image, path, film)
        except ForgeError:
            found["refused"] += 1
            continue
        except AssertionError:
            found_by_audit(image, path)
            found["found by the audit"] += 1
            continue
        assert head <= film.appended[-1].head
        found["whole" if head == film.appended[-1].head else "shorter"] += 1
    print(dict(found))
    assert found["whole"]
    assert found["refused"] + found["shorter"] + found["found by the audit"]


def found_by_audit(image: Files, path: Path) -> None:
    """What comes back isn't history; then the audit must say so before anything is written."""
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()
    report = audit(image.write(path))
    assert not report.ok, "neither history nor refused nor found"


def test_a_log_that_is_gone_is_noticed_by_what_was_signed(film: Film, tmp_path: Path) -> None:
    """A shorter history is sound by itself; only a checkpoint kept elsewhere, or the keyring's, shows it."""
    path = film.appended[-1].files.write(tmp_path / "image.db")
    log_of(path).unlink()
    with opened(path) as ledger:
        assert ledger.head.seq < film.appended[-1].head
    assert audit(path).ok
