"""Histories that an author forged as well as one can, and the key or the one note that exposes each."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.errors import ActorForbidden
from forge.events.ledger import LedgerKeyAdopted
from forge.ledger.audit.history import audit
from forge.ledger.audit.report import KeptCheckpoint
from forge.ledger.audit.signatures import DECISIVE as AUDITED
from forge.ledger.signatures.checkpoints import DECISIVE, adopt, issue, rotate, signing_state
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.signatures.signing import SigningKey, checkpoint_text, signed_note
from forge.proof.note import parse_key

from .making import LEDGER_ID, examples, fill, open_ledger
from .test_checkpoints import ADA, NAME, SEEDS, keyring, path
from .test_tampering import rewrite

OWNER = parse_key(SigningKey(NAME, SEEDS[0]).verifier)
EVE = SEEDS[4]
__all__ = ["keyring", "path"]


@pytest.fixture
def kept(path: Path, keyring: Keyring) -> bytes:
    """A checkpoint of 11 events; the ledger went on, and its owner signed that too."""
    with open_ledger(path) as ledger:
        fill(ledger, 10)
        note = issue(ledger, keyring, actor=ADA).note.encode()
        fill(ledger, 9)
        issue(ledger, keyring, actor=ADA)
    return note


def cut_and_go_on(path: Path, tmp_path: Path, *, sign: bool = True) -> Keyring:
    """Keep what the note covers and its record; write another end, signed by the forger's own key."""
    rewrite(path, lambda rows: rows[:12])
    theirs = Keyring(tmp_path / "eve", NAME)
    with open_ledger(path) as ledger:
        fill(ledger, 5)
        ledger.append([examples()["RunSealed"]], actor=ADA, correlation_id="c")
        if sign:
            adopt(ledger, theirs, EVE, actor=ADA)
            fill(ledger, 3)
            issue(ledger, theirs, actor=ADA)
    return theirs


def test_an_end_that_another_key_signed_is_not_what_the_trusted_key_vouches_for(
    path: Path, kept: bytes, tmp_path: Path
) -> None:
    cut_and_go_on(path, tmp_path)
    assert audit(path).ok, "alone, it is sound"
    for note in (None, kept):
        report = audit(path, key=OWNER, checkpoint=note)
        assert not report.ok
        assert report.vouching is not None
        assert (report.vouching.verdict, report.vouching.vouched_for) == ("unvouched", 11)
        assert report.vouching.unvouched == report.events - 11
        assert [one.what for one in report.problems] == ["vouched for"]


def test_decisions_that_no_key_signed_are_not_vouched_for(path: Path, kept: bytes, tmp_path: Path) -> None:
    cut_and_go_on(path, tmp_path, sign=False)
    report = audit(path, key=OWNER, checkpoint=kept)
    assert (report.ok, report.vouching and report.vouching.verdict) == (False, "unvouched")


def test_naming_the_trusted_key_again_does_not_make_it_vouch(path: Path, kept: bytes, tmp_path: Path) -> None:
    cut_and_go_on(path, tmp_path)
    with open_ledger(path) as ledger:
        adopt(ledger, Keyring(tmp_path / "again", NAME), SEEDS[0], actor=ADA)
    rewrite(path, lambda rows: rows[:-1])  # the forger hasn't got the key, so no note follows
    report = audit(path, key=OWNER, checkpoint=kept)
    assert (report.ok, report.vouching and report.vouching.vouched_for) == (False, 11)


def test_the_rest_is_said_where_it_holds_no_decision(path: Path, kept: bytes, keyring: Keyring) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 3)
    report = audit(path, key=OWNER)
    assert report.ok, report.problems
    assert report.vouching is not None
    assert (report.vouching.verdict, report.vouching.vouched_for, report.vouching.unvouched) == ("vouched", 21, 4)


def test_a_key_vouches_for_what_its_successors_sign_and_for_nothing_after_an_adoption(
    path: Path, kept: bytes, keyring: Keyring, tmp_path: Path
) -> None:
    with open_ledger(path) as ledger:
        rotate(ledger, keyring, SEEDS[1], actor=ADA)
        rotate(ledger, keyring, SEEDS[2], actor=ADA)
        fill(ledger, 4)
        size = issue(ledger, keyring, actor=ADA).size
    for seed in SEEDS[:3]:
        report = audit(
            path, key=parse_key(SigningKey(NAME, seed).verifier), checkpoint=kept if seed == OWNER else None
        )
        assert report.ok, report.problems
        assert report.vouching is not None
        assert report.vouching.vouched_for == size
    assert [one.how for one in report.keys] == ["opened", "rotated", "rotated"]
    with open_ledger(path) as ledger:
        adopt(ledger, Keyring(tmp_path / "other", NAME), SEEDS[3], actor=ADA)
        assert signing_state(ledger).unvouched == (report.events + 1,)
    report = audit(path, key=OWNER)
    assert (report.ok, report.vouching and report.vouching.vouched_for) == (False, size)
    assert [one.vouched for one in report.keys] == [True, True, True, False]
    assert (report.keys[-1].first, report.keys[-1].last) == (size + 1, report.events - 1)
    assert audit(path, key=parse_key(SigningKey(NAME, SEEDS[3]).verifier)).ok, "its note covers all before it"


def test_a_kept_note_of_the_trusted_key_vouches_as_a_recorded_one_does(path: Path, kept: bytes) -> None:
    rewrite(path, lambda rows: [row for row in rows if row.type != "CheckpointPublished"][:11])
    assert not audit(path, key=OWNER).ok, "it vouches for nothing that the ledger records"
    report = audit(path, key=OWNER, checkpoint=kept)
    assert (report.ok, report.vouching and report.vouching.vouched_for) == (True, 11)


def test_a_ledger_cut_before_the_key_of_the_kept_note_was_named_is_truncated(
    path: Path, kept: bytes, tmp_path: Path
) -> None:
    with open_ledger(path) as ledger:
        note = adopt(ledger, Keyring(tmp_path / "new", NAME), SEEDS[1], actor=ADA).note.encode()
        length = ledger.head.seq
    for left in (length - 1, length - 2, length - 3, 5):
        cut = Path(shutil.copy(path, tmp_path / f"cut-{left}.db"))
        rewrite(cut, lambda rows, left=left: rows[:left])
        report = audit(cut, checkpoint=note)
        expected = "consistent" if left == length - 1 else "truncated"
        assert report.checkpoint is not None
        assert (report.ok, report.checkpoint.verdict) == (expected == "consistent", expected)


@pytest.mark.parametrize("damage", [b"no database at all" * 400, b""], ids=["garbage", "empty"])
def test_a_note_says_nothing_of_a_database_that_can_not_be_read(path: Path, kept: bytes, damage: bytes) -> None:
    path.write_bytes(damage)
    report = audit(path, checkpoint=kept)
    assert report.checkpoint is not None
    assert (report.ok, report.checkpoint.verdict) == (False, "unreadable")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda rows: rows, None),
        (lambda rows: rows[:-1], "truncated"),
        (lambda rows: [*rows[:3], rows[4], rows[3], *rows[5:]], "rewritten"),
    ],
    ids=["as it was", "cut off", "rewritten"],
)
def test_what_lies_beside_the_ledger_is_held_against_it(
    change: Callable[[list], list], found: str | None, path: Path, kept: bytes
) -> None:
    rewrite(path, lambda rows: [row for row in rows if row.type != "CheckpointPublished"][:11])
    rewrite(path, change)
    beside = (KeptCheckpoint("kernel_registry/checkpoint", kept, of_this=True),)
    assert [(one.what, one.found) for one in audit(path, kept=beside).problems] == (
        [("kernel_registry/checkpoint", found)] if found else []
    )


def test_a_note_of_another_log_beside_the_ledger_counts_only_where_it_was_published(path: Path, kept: bytes) -> None:
    other = kept.replace(NAME.encode(), b"other/log")
    assert audit(path, kept=(KeptCheckpoint("keys/x", other, of_this=False),)).ok
    (problem,) = audit(path, kept=(KeptCheckpoint("kernel_registry/checkpoint", other, of_this=True),)).problems
    assert problem.found == "other_ledger"
    (problem,) = audit(path, kept=(KeptCheckpoint("keys/x", b"garbage", of_this=False),)).problems
    assert problem.expected == "a signed checkpoint"


@pytest.mark.parametrize("actor", ["ci:main", "system:recovery", "agent:model", "import:other"])
def test_only_a_person_adopts_a_key(actor: str, path: Path) -> None:
    event = LedgerKeyAdopted(ledger_id=LEDGER_ID, public_key="A" * 43 + "=")
    with open_ledger(path) as ledger, pytest.raises(ActorForbidden):
        ledger.append([event], actor=actor, correlation_id="c")


def test_the_auditor_and_the_signer_agree_on_what_is_decisive() -> None:
    assert sorted(name.strip(" '") for name in AUDITED.split(",")) == sorted(DECISIVE)


@pytest.mark.parametrize("kind", ["ModelMeasured", "DeviceCalibrated", "RunSealed"])
def test_what_may_be_quoted_is_vouched_for_or_named(kind: str, path: Path, kept: bytes) -> None:
    """Someone with the file, but without the key, can add such an event at the end."""
    assert audit(path, key=OWNER).ok
    with open_ledger(path) as ledger:
        ledger.append([examples()[kind]], actor=ADA, correlation_id="c")
    report = audit(path, key=OWNER)
    assert [problem.what for problem in report.problems] == ["vouched for"]


def stolen_note(path: Path, size: int) -> bytes:
    """What a thief of the first key signs: the root that the ledger really has at a size."""
    with open_ledger(path) as ledger, ledger.tree() as tree:
        text = checkpoint_text(NAME, size, tree.root(size))
    return signed_note(text, (SigningKey(NAME, SEEDS[0]),)).encode()


def test_a_key_that_was_replaced_vouches_for_nothing_after_that(path: Path, kept: bytes, keyring: Keyring) -> None:
    """Its thief adds decisions behind the rotation, and signs them where no event records it."""
    with open_ledger(path) as ledger:
        rotate(ledger, keyring, SEEDS[1], actor=ADA)
        size = issue(ledger, keyring, actor=ADA).size
        ledger.append([examples()["RunSealed"]], actor=ADA, correlation_id="c")
        end = ledger.head.seq
    later = stolen_note(path, end)
    for key in (OWNER, parse_key(SigningKey(NAME, SEEDS[1]).verifier)):
        report = audit(path, key=key, checkpoint=later)
        assert (report.ok, report.vouching and report.vouching.vouched_for) == (False, size)
    report = audit(path, checkpoint=later)
    assert (report.ok, report.checkpoint and report.checkpoint.verdict) == (False, "not_signed")
    report = audit(path, kept=[KeptCheckpoint("kernel_registry/checkpoint", later, True)])
    assert [one.what for one in report.problems] == ["kernel_registry/checkpoint"]
    for earlier in (11, size - 2):
        assert audit(path, checkpoint=stolen_note(path, earlier)).ok, "the key was in force then"


def test_a_replaced_key_does_not_come_back(path: Path, kept: bytes, keyring: Keyring, tmp_path: Path) -> None:
    """Its thief lets the ledger adopt it anew: those who trust it would believe the new end."""
    theirs = Keyring(tmp_path / "eve", NAME)
    with open_ledger(path) as ledger:
        rotate(ledger, keyring, SEEDS[1], actor=ADA)
        size = issue(ledger, keyring, actor=ADA).size
        ledger.append([examples()["RunSealed"]], actor=ADA, correlation_id="c")
        adopt(ledger, theirs, SEEDS[0], actor=ADA)
    report = audit(path, key=OWNER)
    assert [one.what for one in report.problems] == ["public_key", "vouched for"]
    assert report.vouching is not None
    assert report.vouching.vouched_for == size
