"""Who signs what: never two histories of one log, never without the key, never something that isn't stored."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.errors import CheckpointRefused, UsageError
from forge.events.ledger import CheckpointPublished
from forge.ledger.audit.history import audit
from forge.ledger.signatures.checkpoints import (
    adopt,
    issue,
    newest_checkpoint,
    require_continued,
    rotate,
    signing_state,
)
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.signatures.signing import SigningKey, checkpoint_text, log_name, rotation_text, signed_note
from forge.ledger.store import Ledger
from forge.proof.note import opened, parse_checkpoint, parse_key, parse_note

from .making import LEDGER_ID, ORIGIN, create, duplicated, fill, new_id, now, open_ledger

ADA = "cli:ada@lab"
NAME = log_name(ORIGIN, LEDGER_ID)
SEEDS = [bytes([number]) * 32 for number in range(1, 6)]
Tamper = Callable[[str], None]


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "keys", NAME)


@pytest.fixture
def path(tmp_path: Path, keyring: Keyring) -> Path:
    """A ledger that began with a key, as `forge init` makes it."""
    key = keyring.make(SEEDS[0])
    path = tmp_path / "kernel_registry.db"
    Ledger.create(
        path,
        ledger_id=LEDGER_ID,
        origin=ORIGIN,
        forge_version="0.1.0",
        now=now,
        new_id=new_id,
        public_key=base64.b64encode(key.public).decode(),
    ).close()
    return path


def checked(issued: CheckpointPublished, *keys: str) -> None:
    """The note says what the event says, under each of the keys."""
    for key in keys:
        found = parse_checkpoint(opened(parse_note(issued.note.encode()), [parse_key(key)]))
        assert (found.origin, found.size, found.root.hex()) == (NAME, issued.size, issued.root_hash)


def test_a_checkpoint_covers_all_events_and_is_recorded(path: Path, keyring: Keyring) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 20)
        issued = issue(ledger, keyring, actor=ADA)
        assert (issued.size, ledger.head.seq) == (21, 22)
        checked(issued, SigningKey(NAME, SEEDS[0]).verifier)
        assert newest_checkpoint(ledger) == issued
    report = audit(path)
    assert report.ok, report.problems
    assert report.signed == 21
    assert audit(path, checkpoint=issued.note.encode()).checkpoint.verdict == "consistent"


def test_asked_twice_it_gives_the_same_and_writes_nothing(path: Path, keyring: Keyring) -> None:
    with open_ledger(path) as ledger:
        first = issue(ledger, keyring, actor=ADA)
        assert issue(ledger, keyring, actor=ADA) == first
        assert ledger.head.seq == 2
        fill(ledger, 1)
        assert issue(ledger, keyring, actor=ADA).size == 3


def test_after_a_crash_between_the_note_and_its_record_the_next_one_goes_on(path: Path, keyring: Keyring) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 3)
        with ledger.tree() as tree:
            note = signed_note(checkpoint_text(NAME, 4, tree.root()), [SigningKey(NAME, SEEDS[0])])
        keyring.remember(note)  # and here it was killed
        issued = issue(ledger, keyring, actor=ADA)
        assert (issued.size, issued.note) == (4, note)
        keyring.remember(note)
        fill(ledger, 1)
        assert issue(ledger, keyring, actor=ADA).size == 6
    assert audit(path).ok


REWRITES = {
    "cut off": "DELETE FROM event WHERE seq > 5",
    "an older copy": None,
}


@pytest.mark.parametrize("case", REWRITES)
def test_a_ledger_that_is_shorter_than_what_was_signed_is_refused(
    case: str, path: Path, keyring: Keyring, tamper: Tamper, tmp_path: Path
) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 4)
    copy = shutil.copy(path, tmp_path / "copy.db")
    with open_ledger(path) as ledger:
        fill(ledger, 6)
        kept = issue(ledger, keyring, actor=ADA).note.encode()
    if case == "cut off":
        tamper("DELETE FROM event WHERE seq > 5")
    else:
        shutil.copy(copy, path)
    with open_ledger(path) as ledger:
        before = ledger.head
        for refused in (
            lambda: issue(ledger, keyring, actor=ADA),
            lambda: rotate(ledger, keyring, SEEDS[1], actor=ADA),
            lambda: require_continued(ledger, keyring),
        ):
            with pytest.raises(CheckpointRefused, match="5 events, 11 were signed"):
                refused()
        assert ledger.head == before
    assert audit(path, checkpoint=kept).checkpoint.verdict == "truncated"


def test_another_history_of_the_same_length_is_refused(path: Path, keyring: Keyring, tmp_path: Path) -> None:
    copy = Path(shutil.copy(path, tmp_path / "copy.db"))
    with open_ledger(path) as ledger:
        fill(ledger, 10)
        kept = issue(ledger, keyring, actor=ADA).note.encode()
        fill(ledger, 10)
    for length in (10, 11, 40):
        fork = Path(shutil.copy(copy, tmp_path / f"fork-{length}.db"))
        with open_ledger(fork) as ledger:
            ledger.append([duplicated(number) for number in range(length)], actor=ADA, correlation_id="c")
            before = ledger.head
            with pytest.raises(CheckpointRefused, match="rewritten"):
                issue(ledger, keyring, actor=ADA)
            with pytest.raises(CheckpointRefused, match="rewritten"):
                require_continued(ledger, keyring)
            with pytest.raises(CheckpointRefused, match="rewritten"):
                rotate(ledger, keyring, SEEDS[1], actor=ADA)
            assert ledger.head == before
        report = audit(fork, checkpoint=kept)
        assert (report.ok, report.checkpoint.verdict) == (False, "rewritten")
        assert audit(fork).ok, "alone, the fork is sound"


def test_a_ledger_without_a_key_says_how_to_get_one(tmp_path: Path, keyring: Keyring) -> None:
    plain = tmp_path / "plain.db"
    with create(plain) as ledger:
        assert signing_state(ledger).verifier is None
        for refused in (
            lambda: issue(ledger, keyring, actor=ADA),
            lambda: rotate(ledger, keyring, SEEDS[0], actor=ADA),
        ):
            with pytest.raises(UsageError) as error:
                refused()
            assert error.value.hint == "forge ledger checkpoint --new-key"
        issued = adopt(ledger, keyring, SEEDS[2], actor=ADA)
        checked(issued, SigningKey(NAME, SEEDS[2]).verifier)
        assert [one.event.TYPE for one in ledger.read()][1:] == ["LedgerKeyAdopted", "CheckpointPublished"]
        with pytest.raises(UsageError, match="name its successor"):
            adopt(ledger, keyring, SEEDS[3], actor=ADA)
    assert audit(plain).ok


def test_a_lost_key_is_said_and_can_be_followed_by_one_that_no_key_vouches_for(path: Path, keyring: Keyring) -> None:
    shutil.rmtree(keyring.folder)
    with open_ledger(path) as ledger:
        with pytest.raises(UsageError, match="isn't in") as lost:
            issue(ledger, keyring, actor=ADA)
        assert lost.value.hint == "forge ledger key import --help"
        checked(adopt(ledger, keyring, SEEDS[1], actor=ADA), SigningKey(NAME, SEEDS[1]).verifier)
    assert audit(path).ok
    report = audit(path, key=parse_key(SigningKey(NAME, SEEDS[3]).verifier))
    assert [problem.what for problem in report.problems] == ["key"]


def test_rotation_is_signed_by_the_old_key_and_the_next_checkpoint_by_both(path: Path, keyring: Keyring) -> None:
    old, new = SigningKey(NAME, SEEDS[0]), SigningKey(NAME, SEEDS[1])
    with open_ledger(path) as ledger:
        fill(ledger, 3)
        before = issue(ledger, keyring, actor=ADA)
        issued = rotate(ledger, keyring, SEEDS[1], actor=ADA)
        checked(issued, old.verifier, new.verifier)
        assert signing_state(ledger).verifier == new.verifier
        (rotated,) = ledger.read(types=("LedgerKeyRotated",))
        text = opened(parse_note(rotated.event.note.encode()), [parse_key(old.verifier)])
        assert text == rotation_text(NAME, old.verifier, new.verifier)
        with pytest.raises(UsageError):
            parse_checkpoint(text)
        fill(ledger, 1)
        checked(issue(ledger, keyring, actor=ADA), new.verifier)
    assert not keyring.has(old.public)
    report = audit(path)
    assert report.ok, report.problems
    for note in (before.note, issued.note):
        assert audit(path, checkpoint=note.encode()).checkpoint.verdict == "consistent"


def test_a_successor_that_the_old_key_did_not_name_is_found(path: Path, keyring: Keyring) -> None:
    from forge.events.ledger import LedgerKeyRotated

    thief, old = SigningKey(NAME, SEEDS[4]), SigningKey(NAME, SEEDS[0])
    for note in (
        signed_note(rotation_text(NAME, old.verifier, thief.verifier), [thief]),
        signed_note(rotation_text(NAME, old.verifier, old.verifier), [old]),
        "no note",
    ):
        fork = Path(shutil.copy(path, path.with_name("fork.db")))
        with open_ledger(fork) as ledger:
            key = base64.b64encode(thief.public).decode()
            event = LedgerKeyRotated(ledger_id=LEDGER_ID, public_key=key, note=note)
            ledger.append([event], actor=ADA, correlation_id="c")
        assert (audit(fork).problems[0].seq, audit(fork).problems[0].what) == (2, "LedgerKeyRotated")


def test_a_recorded_checkpoint_that_lies_is_found(path: Path, keyring: Keyring) -> None:
    key = SigningKey(NAME, SEEDS[0])
    with open_ledger(path) as ledger:
        fill(ledger, 3)
        with ledger.tree() as tree:
            root = tree.root()
    right = {"ledger_id": LEDGER_ID, "size": 4, "root_hash": root.hex()}
    note = signed_note(checkpoint_text(NAME, 4, root), [key])
    cases = {
        "another root": right
        | {"root_hash": "00" * 32, "note": signed_note(checkpoint_text(NAME, 4, bytes(32)), [key])},
        "another size": right | {"size": 3, "note": signed_note(checkpoint_text(NAME, 3, root), [key])},
        "a size to come": right | {"size": 5, "note": signed_note(checkpoint_text(NAME, 5, root), [key])},
        "said otherwise": right | {"size": 3, "note": note},
        "another log": right | {"note": signed_note(checkpoint_text("other/log", 4, root), [key])},
        "another key": right | {"note": signed_note(checkpoint_text(NAME, 4, root), [SigningKey(NAME, SEEDS[3])])},
        "no note": right | {"note": "nothing"},
        "another ledger": right | {"ledger_id": "other", "note": note},
    }
    for case, fields in cases.items():
        fork = Path(shutil.copy(path, path.with_name("fork.db")))
        with open_ledger(fork) as ledger:
            ledger.append([CheckpointPublished.model_validate(fields)], actor=ADA, correlation_id="c")
        report = audit(fork)
        assert (report.ok, report.signed) == (False, 0), case
        assert report.problems[0].seq == 5, case


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda note: note, "consistent"),
        (lambda note: note.replace(NAME, "other/log"), "other_ledger"),
        (lambda note: signed_note(note.split("\n\n")[0] + "\n", [SigningKey(NAME, SEEDS[3])]), "not_signed"),
        (lambda note: note.replace("\n11\n", "\n10\n"), "not_signed"),
    ],
    ids=["as it was", "of another log", "by another key", "edited"],
)
def test_a_given_checkpoint_is_judged(
    change: Callable[[str], str], verdict: str, path: Path, keyring: Keyring
) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 10)
        note = issue(ledger, keyring, actor=ADA).note
    report = audit(path, checkpoint=change(note).encode())
    assert report.checkpoint.verdict == verdict
    assert report.ok == (verdict == "consistent")


def test_what_is_no_checkpoint_can_not_be_used(path: Path) -> None:
    for content in (b"", b"\xff", b"a note\n\nwithout a signature\n", EXAMPLE):
        with pytest.raises(UsageError):
            audit(path, checkpoint=content)


EXAMPLE = signed_note("only text\n", [SigningKey("k", bytes(32))]).encode()


def test_a_private_key_that_others_can_read_signs_nothing(path: Path, keyring: Keyring) -> None:
    (key_file,) = keyring.folder.glob("*.key")
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert keyring.folder.stat().st_mode & 0o777 == 0o700
    key_file.chmod(0o644)
    with open_ledger(path) as ledger, pytest.raises(CheckpointRefused, match="chmod 600"):
        issue(ledger, keyring, actor=ADA)


@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b"\xff\xfe", b"other/log\n3\nAAAA\n\nsig\n", f"{NAME}\n3\n!\n\nsig\n\n".encode()]
)
def test_a_memory_that_can_not_be_read_stops_the_signer(content: bytes, path: Path, keyring: Keyring) -> None:
    with open_ledger(path) as ledger:
        issue(ledger, keyring, actor=ADA)
        (last,) = keyring.folder.glob("*.checkpoint")
        last.write_bytes(content)
        fill(ledger, 2)
        with pytest.raises(CheckpointRefused, match="isn't the checkpoint that was signed last"):
            issue(ledger, keyring, actor=ADA)


def test_a_damaged_private_key_is_named_and_not_shown(path: Path, keyring: Keyring) -> None:
    (key_file,) = keyring.folder.glob("*.key")
    text = key_file.read_text()
    key_file.write_text(text[:-6] + "AAAAA\n")
    with open_ledger(path) as ledger, pytest.raises(UsageError, match="private key"):
        issue(ledger, keyring, actor=ADA)


SIGNERS = """
import sys, os, time
from datetime import UTC, datetime
from pathlib import Path
from forge.domain.digest import sha256
from forge.events.candidate import CandidateDuplicated
from forge.ledger.signatures.checkpoints import issue
from forge.ledger.ids import uuid7
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.store import Ledger

path, keys, name, who = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
new_id = lambda: uuid7(time.time_ns() // 10**6, os.urandom(10))
ledger = Ledger.open(path, now=lambda: datetime.now(UTC), new_id=new_id)
for number in range(15):
    event = CandidateDuplicated(run_id="r", task_id="t", candidate=sha256(who.encode()), earlier_seq=number)
    ledger.append([event], actor=f"ci:{who}", correlation_id="c")
    issue(ledger, Keyring(keys, name), actor=f"ci:{who}")
ledger.close()
"""


def test_processes_that_sign_at_once_never_contradict_each_other(path: Path, keyring: Keyring) -> None:
    command = [sys.executable, "-c", SIGNERS, str(path), str(keyring.folder), NAME]
    signers = [subprocess.Popen([*command, f"w{place}"]) for place in range(3)]
    assert [signer.wait(timeout=120) for signer in signers] == [0, 0, 0]
    report = audit(path)
    assert report.ok, report.problems
    with open_ledger(path) as ledger:
        sizes = [one.event.size for one in ledger.read(types=("CheckpointPublished",))]
    assert sizes == sorted(set(sizes))
    assert not [name for name in os.listdir(keyring.folder) if name.startswith(".part-")]
