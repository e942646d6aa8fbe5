"""Bundles between machines: whole or refused, kept word for word, and never two histories of one ledger."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from forge.domain.digest import canonical
from forge.errors import BundleRefused, ForgeError, LedgerForked, UsageError
from forge.events.promote import KernelRevoked
from forge.ledger.audit.history import audit
from forge.ledger.signatures.checkpoints import adopt, rotate
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.signatures.signing import SigningKey, checkpoint_text, log_name, signed_note
from forge.ledger.transfer.bundle import FIRST_LINE, BundleHeader, UntrustedBundle
from forge.proof.note import parse_key

from .making import LEDGER_ID, fill, open_ledger
from .sharing import ADA, THERE, Machine

COLUMNS = "seq, event_id, stream, type, recorded_at, actor, payload, prev_hash, event_hash"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two machines and a bundle of the first; to be copied, never changed."""
    root = tmp_path_factory.mktemp("machines")
    Machine(root / "there", THERE).create().render("one", "two").export(root / "far.bundle")
    Machine(root / "here", LEDGER_ID, "kernels/near").create(3).render("mine")
    return root


@pytest.fixture
def there(made: Path, tmp_path: Path) -> Machine:
    return Machine(Path(shutil.copytree(made / "there", tmp_path / "there")), THERE)


@pytest.fixture
def here(made: Path, tmp_path: Path) -> Machine:
    return Machine(Path(shutil.copytree(made / "here", tmp_path / "here")), LEDGER_ID, "kernels/near")


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "far.bundle", tmp_path / "far.bundle"))


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {COLUMNS} FROM {table} ORDER BY seq").fetchall()


def state(machine: Machine) -> tuple[object, ...]:
    """All that an import could have changed."""
    files = sorted(str(path) for path in machine.runs.rglob("*"))
    return rows(machine.path, "event"), rows(machine.path, "foreign_event"), files


def sound(machine: Machine) -> bool:
    report = audit(machine.path, runs=machine.runs)
    assert report.ok, report.problems
    return report.ok


def test_rows_are_kept_word_for_word_and_never_chained_into_ours(here: Machine, there: Machine, bundle: Path) -> None:
    before = rows(here.path, "event")
    done = here.take_in(bundle)
    assert (done.new, done.held, done.header.size) == (3, 0, 3)
    assert rows(here.path, "foreign_event") == rows(there.path, "event")[:3]
    assert rows(here.path, "event")[: len(before)] == before
    assert [row[3] for row in rows(here.path, "event")[len(before) :]] == ["LedgerImported"]
    for digest in (path.name for path in (there.runs / "cas").rglob("*") if path.is_file()):
        assert here.blobs.get(digest) == there.blobs.get(digest)
    assert sound(here)
    assert audit(here.path, runs=here.runs).imported == 3


def test_a_revocations_evidence_travels_with_it_and_is_missed_where_it_is_gone(
    here: Machine, there: Machine, tmp_path: Path
) -> None:
    """It names the file by `sha256:` in a list, and that file names another by a field of its own."""
    inner = there.blobs.put(b"the outputs that differ")
    report = there.blobs.put(canonical({"outputs_sha256": inner}))
    with open_ledger(there.path) as ledger:
        place = f"event:1:{ledger.head.event_hash}"
        event = KernelRevoked(
            kernel_id="k_v1",
            family="k",
            reason="row 3 is wrong",
            severity="wrong_result",
            evidence=(place, f"sha256:{report}"),
        )
        ledger.append([event], actor=ADA, correlation_id="c")
    exported = there.export(tmp_path / "revoked.bundle")
    assert exported.header.blobs == 6, "two prompts with one inside each, the report and what it names"
    content = (tmp_path / "revoked.bundle").read_bytes()
    assert f"blob {report} ".encode() in content
    here.take_in(tmp_path / "revoked.bundle")
    assert here.blobs.get(report) == there.blobs.get(report)
    assert here.blobs.get(inner) == b"the outputs that differ"
    assert sound(here)
    os.unlink(here.blobs.path(report))
    (problem,) = audit(here.path, runs=here.runs).problems
    assert problem.expected == report
    os.unlink(there.blobs.path(report))
    there.export(tmp_path / "without.bundle")
    with pytest.raises(BundleRefused, match=report):
        Machine(tmp_path / "third", LEDGER_ID).create(4).take_in(tmp_path / "without.bundle")


def test_importing_it_again_changes_nothing(here: Machine, bundle: Path) -> None:
    here.take_in(bundle)
    before = state(here)
    assert here.take_in(bundle).new == 0
    assert state(here) == before


def test_a_longer_bundle_extends_and_a_shorter_one_adds_nothing(
    here: Machine, there: Machine, bundle: Path, tmp_path: Path
) -> None:
    here.take_in(bundle)
    there.render("three").export(tmp_path / "longer.bundle")
    assert here.take_in(tmp_path / "longer.bundle").new == 2
    before = state(here)
    assert here.take_in(bundle).new == 0
    assert state(here) == before
    assert rows(here.path, "foreign_event") == rows(there.path, "event")[:5]
    assert sound(here)


def test_a_bundle_that_only_goes_on_needs_what_came_before(
    here: Machine, there: Machine, bundle: Path, tmp_path: Path
) -> None:
    there.render("three").export(tmp_path / "rest.bundle", since=3)
    before = state(here)
    with pytest.raises(UsageError, match="begins at event 4, and of that ledger 0 are here"):
        here.take_in(tmp_path / "rest.bundle")
    assert state(here) == before
    here.take_in(bundle)
    assert here.take_in(tmp_path / "rest.bundle").new == 2
    assert here.take_in(tmp_path / "rest.bundle").new == 0
    assert sound(here)


def test_the_same_events_give_the_same_bytes(there: Machine, bundle: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        there.export(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == bundle.read_bytes()


def test_a_fork_is_refused_at_the_first_event_that_differs(here: Machine, there: Machine, tmp_path: Path) -> None:
    other = Machine(Path(shutil.copytree(there.folder, tmp_path / "other")), THERE)
    there.render("this way").export(tmp_path / "one.bundle")
    other.render("that way", "and on").export(tmp_path / "two.bundle")
    other.export(tmp_path / "two_rest.bundle", since=5)
    here.take_in(tmp_path / "one.bundle")
    before = state(here)
    with pytest.raises(LedgerForked, match="event 5 is"):
        here.take_in(tmp_path / "two.bundle")
    with pytest.raises(LedgerForked, match="event 5 or one before it"):
        here.take_in(tmp_path / "two_rest.bundle")
    assert state(here) == before


def test_our_own_bundle_is_nothing_to_import_and_a_fork_of_ours_is_told(here: Machine, tmp_path: Path) -> None:
    copy = Machine(Path(shutil.copytree(here.folder, tmp_path / "copy")), LEDGER_ID, "kernels/near")
    here.export(tmp_path / "own.bundle")
    with pytest.raises(UsageError, match="of this very ledger"):
        here.take_in(tmp_path / "own.bundle")
    copy.render("else").export(tmp_path / "fork.bundle")
    copy.export(tmp_path / "fork_rest.bundle", since=1)
    for name in ("fork.bundle", "fork_rest.bundle"):
        with pytest.raises(LedgerForked, match="event 3 is"):
            here.take_in(tmp_path / name)


def resealed(bundle: Path, edit: Callable[[bytes], bytes]) -> None:
    """Edit a bundle and put the right end under it, as a forger would."""
    body, _, _ = bundle.read_bytes().rpartition(b"end ")
    body = edit(body)
    bundle.write_bytes(body + f"end {hashlib.sha256(body).hexdigest()}\n".encode())


def with_header(**changes: object) -> Callable[[bytes], bytes]:
    def edit(body: bytes) -> bytes:
        first, header, rest = body.split(b"\n", 2)
        document = orjson.loads(header) | changes
        return b"\n".join((first, orjson.dumps(document, option=orjson.OPT_SORT_KEYS), rest))

    return edit


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def edit(body: bytes) -> bytes:
        assert old in body
        return body.replace(old, new, 1)

    return edit


def first_blob(bundle: Path) -> bytes:
    return next(line for line in bundle.read_bytes().split(b"\n") if line.startswith(b"blob ")).split(b" ")[1]


FORGED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "an actor": (replaced(b'"actor":"cli:ada@lab"', b'"actor":"cli:eve@lab"'), "event 2: event_hash"),
    "a payload": (replaced(b"inner two", b"inner TWO"), "has content"),
    "two events changed places": (
        lambda body: b"\n".join([*(lines := body.split(b"\n"))[:3], lines[4], lines[3], *lines[5:]]),
        "event 3 stands where event 2 was expected",
    ),
    "an event left out": (
        lambda body: b"\n".join((lines := body.split(b"\n"))[:3] + lines[4:]),
        "event 3 stands where event 2 was expected",
    ),
    "an event too many": (with_header(size=2), "checkpoint of 3 events is truncated; expected one of 2"),
    "an unknown column": (replaced(b'{"actor"', b'{"aaaa":1,"actor"'), "expected exactly the columns"),
    "not canonical": (replaced(b'{"actor":', b'{"actor": '), "canonical JSON"),
    "not JSON": (replaced(b'{"actor":', b'{"actor"='), "can't be read"),
    "a number as text": (replaced(b'"schema_version":1', b'"schema_version":"1"'), "schema_version"),
    "true as a number": (replaced(b'"schema_version":1', b'"schema_version":true'), "schema_version"),
    "huge numbers of events": (with_header(size=10**15), "is missing or cut off"),
    "huge numbers of blobs": (with_header(blobs=10**15), "missing or cut off|begins with"),
    "numbers beyond all": (replaced(b'"blobs":4', b'"blobs":' + b"9" * 30), "header can't be read"),
    "another origin": (with_header(origin="kernels/near"), "LedgerOpened"),
    "another ledger id": (with_header(ledger_id=THERE.replace("7abc", "7abd")), "prev_hash|LedgerOpened"),
    "no blobs": (lambda body: with_header(blobs=0)(body[: body.index(b"blob ")]), "names blob"),
    "a surrogate in a payload": (replaced(b'\\"brief\\"', b'\\"\\ud800\\"'), "event 2"),
    "an extra field in the header": (with_header(path="/etc/passwd"), "header can't be read"),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_was_forged_is_refused_and_nothing_is_changed(case: str, here: Machine, bundle: Path) -> None:
    edit, says = FORGED[case]
    resealed(bundle, edit)
    before = state(here)
    with pytest.raises(BundleRefused, match=says):
        here.take_in(bundle)
    assert state(here) == before


@pytest.mark.parametrize(
    "name", [b"../../../../etc/passwd", b"..%2f", b"0" * 63, b"0" * 65, b"A" * 64, b"/" + b"0" * 63]
)
def test_a_blob_with_a_path_for_a_name_is_refused(name: bytes, here: Machine, bundle: Path) -> None:
    resealed(bundle, replaced(b"blob " + first_blob(bundle), b"blob " + name))
    before = state(here)
    with pytest.raises(BundleRefused, match=r"begins with|longer than"):
        here.take_in(bundle)
    assert state(here) == before


@pytest.mark.parametrize("content", [b"", b"[" * 1000 + b"]" * 1000, b'{"sha256":1}'], ids=["empty", "deep", "small"])
def test_a_blob_that_no_event_names_is_refused(content: bytes, here: Machine, bundle: Path) -> None:
    """It would only fill the disk. What an event's blob names is named, too: the bundle itself has such blobs."""
    digest = hashlib.sha256(content).hexdigest().encode()

    def stuffed(body: bytes) -> bytes:
        counted = with_header(blobs=5)(body)
        lines = [line for line in counted.split(b"\n") if line.startswith(b"blob ")]
        after = next((line for line in lines if line.split(b" ")[1] > digest), None)
        place = len(counted) if after is None else counted.index(after)
        return counted[:place] + b"blob %b %d\n%b\n" % (digest, len(content), content) + counted[place:]

    resealed(bundle, stuffed)
    before = state(here)
    with pytest.raises(BundleRefused, match=f"it has blob {digest.decode()}, which none of its events names"):
        here.take_in(bundle)
    assert state(here) == before


@pytest.mark.parametrize("size_bytes", [b"999999999999999", b"99999999999999999999", b"-1", b"1e9", b"007"])
def test_a_blob_of_a_size_that_the_file_does_not_have_is_refused_before_it_is_read(
    size_bytes: bytes, here: Machine, bundle: Path
) -> None:
    line = next(line for line in bundle.read_bytes().split(b"\n") if line.startswith(b"blob "))
    resealed(bundle, replaced(line, line.rsplit(b" ", 1)[0] + b" " + size_bytes))
    before = state(here)
    with pytest.raises(BundleRefused):
        here.take_in(bundle)
    assert state(here) == before


def test_a_line_without_an_end_is_not_read_into_memory(here: Machine, bundle: Path) -> None:
    header = bundle.read_bytes().split(b"\n")[1]
    bundle.write_bytes(FIRST_LINE + header + b"\n")
    with bundle.open("r+b") as stream:
        stream.truncate(1 << 40)  # a sparse file: a terabyte of zero bytes
    with pytest.raises(BundleRefused, match="event 1 is longer than 131072 bytes"):
        here.take_in(bundle)


def test_a_bundle_cut_off_anywhere_is_refused(here: Machine, bundle: Path) -> None:
    whole = bundle.read_bytes()
    before = state(here)
    for size in [*range(0, 60, 7), *range(60, len(whole), 397), len(whole) - 1]:
        bundle.write_bytes(whole[:size])
        with pytest.raises(ForgeError) as refused:
            here.take_in(bundle)
        assert refused.value.code in ("BUNDLE_REFUSED", "USAGE")
    assert state(here) == before


def test_no_flipped_byte_is_believed(here: Machine, bundle: Path) -> None:
    whole = bundle.read_bytes()
    before = state(here)
    for place in range(0, len(whole), 101):
        changed = bytearray(whole)
        changed[place] ^= 0x01
        bundle.write_bytes(changed)
        with pytest.raises((BundleRefused, UsageError)):
            here.take_in(bundle)
    bundle.write_bytes(whole + b"x")
    with pytest.raises(BundleRefused, match="follows its last line"):
        here.take_in(bundle)
    assert state(here) == before


@pytest.mark.parametrize(
    "content",
    [b"", b"SQLite format 3\0" + bytes(100), b"forge.bundle.v2\n{}\n", b"forge.bundle.v1", b"\x80\x04K\x01."],
)
def test_what_is_no_bundle_is_a_mistake_of_the_caller(content: bytes, here: Machine, bundle: Path) -> None:
    bundle.write_bytes(content)
    with pytest.raises(UsageError, match=r"is no bundle"):
        here.take_in(bundle)


def test_a_folder_or_a_pipe_is_no_bundle(here: Machine, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nothing"):
        with pytest.raises(UsageError, match="no bundle at"):
            here.take_in(path)


def test_only_the_key_that_the_ledger_names_signs_a_bundle(here: Machine, bundle: Path) -> None:
    """A forger who signs the same events with a key of his own, under the same name."""
    with UntrustedBundle(bundle) as opened:
        header: BundleHeader = opened.header
    eve = SigningKey(log_name(header.origin, header.ledger_id), bytes(32))
    text = checkpoint_text(eve.name, header.size, bytes.fromhex(audit(here.path).root or ""))
    for changes, says in (
        ({"verifier_key": eve.verifier}, "its events name"),
        ({"note": signed_note(text, (eve,))}, "not_signed"),
        ({"note": "nonsense"}, "no signed note"),
    ):
        copy = Path(shutil.copy(bundle, bundle.with_name("eve.bundle")))
        resealed(copy, with_header(**changes))
        with pytest.raises((BundleRefused, UsageError), match=says):
            here.take_in(copy)


def test_a_checkpoint_under_so_many_signatures_that_no_event_could_keep_it_is_refused(
    here: Machine, bundle: Path
) -> None:
    with UntrustedBundle(bundle) as opened:
        note = opened.header.note
    before = state(here)
    line = f"\u2014 {'w' * 150} {'A' * 96}\n"
    resealed(bundle, with_header(note=note + line * 90))
    with pytest.raises(BundleRefused, match=r"its checkpoint has \d+ bytes, expected at most 4096"):
        here.take_in(bundle)
    assert state(here) == before
    resealed(bundle, with_header(note=note + line * 10))
    assert here.take_in(bundle).new == 3
    assert sound(here)


def test_the_key_that_is_trusted_must_lead_to_the_one_that_signed(here: Machine, bundle: Path) -> None:
    with UntrustedBundle(bundle) as opened:
        right = parse_key(opened.header.verifier_key)
    wrong = parse_key(SigningKey(right.name, bytes(32)).verifier)
    with pytest.raises(BundleRefused, match="doesn't vouch"):
        here.take_in(bundle, trusted=wrong)
    assert here.take_in(bundle, trusted=right).new == 3


def test_a_rotated_key_is_followed_and_an_adopted_one_must_be_named(
    here: Machine, there: Machine, bundle: Path, tmp_path: Path
) -> None:
    here.take_in(bundle)
    with open_ledger(there.path) as ledger:
        rotate(ledger, there.keyring, bytes([21]) * 32, actor=ADA)
    there.export(tmp_path / "rotated.bundle")
    assert here.take_in(tmp_path / "rotated.bundle").new > 0
    lost = Keyring(tmp_path / "lost", there.keyring.name)
    with open_ledger(there.path) as ledger:
        adopt(ledger, lost, bytes([22]) * 32, actor=ADA)
    shutil.rmtree(there.folder / "keys")
    lost.folder.rename(there.folder / "keys")
    made = there.export(tmp_path / "adopted.bundle")
    before = state(here)
    with pytest.raises(BundleRefused, match="name the new one with --key"):
        here.take_in(tmp_path / "adopted.bundle")
    assert state(here) == before
    assert here.take_in(tmp_path / "adopted.bundle", trusted=parse_key(made.header.verifier_key)).new > 0
    assert sound(here)


def test_a_ledger_without_a_checkpoint_exports_nothing(there: Machine, tmp_path: Path) -> None:
    shutil.rmtree(there.folder / "keys")
    path = there.export(tmp_path / "old.bundle")
    assert path.header.size == 3, "the newest checkpoint that is recorded"
    with pytest.raises(UsageError, match="no events after 3"):
        there.export(tmp_path / "none.bundle", since=3)
    assert not (tmp_path / "none.bundle").exists()


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("UPDATE foreign_event SET actor = 'cli:eve@lab' WHERE seq = 2", "event 2 of"),
        ("UPDATE foreign_event SET payload = replace(payload, 'brief', 'grief') WHERE seq = 2", "event 2 of"),
        ("DELETE FROM foreign_event WHERE seq = 2", "event 3 of"),
        ("DELETE FROM foreign_event WHERE seq = 3", "imported root at 3"),
        ("DELETE FROM foreign_event", "imported root at 3"),
        ("UPDATE foreign_event SET ledger_id = 'other'", "imported root at 3"),
    ],
)
def test_the_audit_finds_every_edit_of_an_imported_row(sql: str, what: str, here: Machine, bundle: Path) -> None:
    here.take_in(bundle)
    with closing(sqlite3.connect(here.path)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(sql)
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()
    report = audit(here.path, runs=here.runs)
    assert not report.ok
    assert any(what in problem.what for problem in report.problems), report.problems


def test_the_audit_misses_an_imported_blob(here: Machine, bundle: Path) -> None:
    here.take_in(bundle)
    payload = json.loads(str(rows(here.path, "foreign_event")[1][6]))
    os.unlink(here.blobs.path(payload["rendered_sha256"]))
    (problem,) = audit(here.path, runs=here.runs).problems
    assert "blob rendered_sha256" in problem.what


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE foreign_event SET actor = 'x'", "no UPDATE"),
        ("DELETE FROM foreign_event", "no DELETE"),
        ("INSERT OR REPLACE INTO foreign_event SELECT * FROM foreign_event WHERE seq = 1", "next of its ledger"),
        ("REPLACE INTO foreign_event SELECT * FROM foreign_event WHERE seq = 3", "next of its ledger"),
    ],
)
def test_the_database_itself_keeps_imported_rows_append_only(
    sql: str, says: str, here: Machine, bundle: Path
) -> None:
    here.take_in(bundle)
    before = rows(here.path, "foreign_event")
    with (
        closing(sqlite3.connect(here.path, isolation_level=None)) as other_connection,
        pytest.raises(sqlite3.IntegrityError, match=says),
    ):
        other_connection.execute(sql)
    assert rows(here.path, "foreign_event") == before


def test_writers_go_on_after_an_import_and_a_header_reads_back(here: Machine, bundle: Path) -> None:
    here.take_in(bundle)
    with open_ledger(here.path) as ledger:
        fill(ledger, 20)
    assert sound(here)
    with UntrustedBundle(bundle) as opened:
        assert canonical(opened.header) == bundle.read_bytes().split(b"\n")[1]
