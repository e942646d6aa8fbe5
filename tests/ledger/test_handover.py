"""One key, carried from machine to machine: who may sign after it, and what the key refuses to contradict."""

import shutil
from pathlib import Path

import pytest

from forge.errors import CheckpointRefused, UsageError
from forge.ledger.audit.history import audit
from forge.ledger.signatures.checkpoints import adopt, issue, rotate
from forge.ledger.signatures.handover import hand_over, sealed, take_over, unsealed
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.signatures.signing import SigningKey

from .making import duplicated, fill, open_ledger
from .test_checkpoints import ADA, NAME, SEEDS, keyring, path

WORD = "correct horse battery"
__all__ = ["keyring", "path"]


def handed_over(path: Path, keyring: Keyring, *, keep: bool = False) -> bytes:
    """What the key's holder writes for the next one."""
    written: list[bytes] = []
    with open_ledger(path) as ledger:
        hand_over(ledger, keyring, WORD, write=written.append, keep=keep)
    return written[0]


@pytest.fixture
def there(tmp_path: Path) -> Keyring:
    """Another machine's folder for keys."""
    return Keyring(tmp_path / "there", NAME)


@pytest.mark.slow
def test_the_key_signs_on_where_it_was_taken_to_and_no_more_where_it_was(
    path: Path, keyring: Keyring, there: Keyring, tmp_path: Path
) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 3)
        issue(ledger, keyring, actor=ADA)
    content = handed_over(path, keyring)
    assert b"PRIVATE" not in content
    with open_ledger(path) as ledger, pytest.raises(UsageError, match="Get it from its holder"):
        issue(ledger, keyring, actor=ADA)
    copy = Path(shutil.copy(path, tmp_path / "copy.db"))
    with open_ledger(copy) as ledger:
        last = take_over(ledger, there, content, WORD)
        assert last is not None
        assert last.size == 4
        fill(ledger, 2)
        issue(ledger, there, actor=ADA)
    report = audit(copy)
    assert report.ok, report.problems
    assert [one.how for one in report.keys] == ["opened"]
    take_back = handed_over(copy, there)
    with open_ledger(path) as ledger, pytest.raises(CheckpointRefused, match="cut off, or is an older copy"):
        take_over(ledger, keyring, take_back, WORD)
    assert not keyring.files(), "refused, so nothing was written"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["adopted", "rotated"])
def test_a_key_that_is_not_in_force_is_refused_by_name(
    how: str, path: Path, keyring: Keyring, there: Keyring
) -> None:
    content = handed_over(path, keyring, keep=True)
    old, new = SigningKey(NAME, SEEDS[0]), SigningKey(NAME, SEEDS[1])
    with open_ledger(path) as ledger:
        if how == "rotated":
            rotate(ledger, keyring, SEEDS[1], actor=ADA)
        else:
            adopt(ledger, there, SEEDS[1], actor=ADA)
        before = sorted(there.folder.glob("*"))
        with pytest.raises(UsageError) as refused:
            take_over(ledger, there, content, WORD)
    assert old.key_id.hex() in refused.value.message
    assert new.key_id.hex() in refused.value.message
    assert sorted(there.folder.glob("*")) == before


@pytest.mark.slow
def test_another_continuation_is_not_signed(path: Path, keyring: Keyring, there: Keyring, tmp_path: Path) -> None:
    fork = Path(shutil.copy(path, tmp_path / "fork.db"))
    with open_ledger(path) as ledger:
        fill(ledger, 4)
        issue(ledger, keyring, actor=ADA)
    content = handed_over(path, keyring)
    with open_ledger(fork) as ledger:
        ledger.append([duplicated(number) for number in range(9)], actor=ADA, correlation_id="c")
        with pytest.raises(CheckpointRefused, match="rewritten"):
            take_over(ledger, there, content, WORD)
    assert not there.files()


@pytest.mark.slow
def test_what_the_ledger_records_counts_where_the_file_is_older(path: Path, keyring: Keyring, there: Keyring) -> None:
    """A file of yesterday and a ledger of today: the newest note is what the key must not contradict."""
    content = handed_over(path, keyring, keep=True)
    with open_ledger(path) as ledger:
        fill(ledger, 5)
        newest = issue(ledger, keyring, actor=ADA)
        take_over(ledger, there, content, WORD)
    assert there.last is not None
    assert there.last.size == newest.size


@pytest.mark.slow
def test_a_file_that_was_altered_or_another_passphrase_gives_no_key(path: Path, keyring: Keyring) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 3)
        issue(ledger, keyring, actor=ADA)
    content = handed_over(path, keyring)
    assert unsealed(content, WORD)[0].seed == SEEDS[0]
    lines = content.split(b"\n")
    other = sealed(SigningKey(NAME, SEEDS[1]), "", WORD).split(b"\n")
    altered = [
        content.replace(b"\n4\n", b"\n3\n"),
        b"\n".join([*lines[:3], b""]),
        b"\n".join([lines[0], other[1], *lines[2:]]),
        b"\n".join([*lines[:2], other[2], *lines[3:]]),
    ]
    for one in altered:
        with pytest.raises(UsageError, match="can't be decrypted"):
            unsealed(one, WORD)
    with pytest.raises(UsageError, match="can't be decrypted"):
        unsealed(content, WORD + "x")
    for nothing in (b"", b"\xff\n\n\n", b"forge.signing-key.v1\nx\n!\n", content[:60], b"PRIVATE+KEY+a+b\nc\nd\ne"):
        with pytest.raises(UsageError):
            unsealed(nothing, WORD)


def test_a_short_passphrase_is_refused_and_the_key_stays(path: Path, keyring: Keyring) -> None:
    with open_ledger(path) as ledger:
        with pytest.raises(UsageError, match="at least 12"):
            hand_over(ledger, keyring, "short", write=lambda _: None, keep=False)
        issue(ledger, keyring, actor=ADA)


def test_a_key_that_could_not_be_written_stays_in_use(path: Path, keyring: Keyring) -> None:
    def full(_: bytes) -> None:
        raise OSError("no space")

    with open_ledger(path) as ledger:
        with pytest.raises(OSError, match="no space"):
            hand_over(ledger, keyring, WORD, write=full, keep=False)
        issue(ledger, keyring, actor=ADA)
