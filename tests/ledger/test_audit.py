import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.domain.candidate import Candidate, CandidateFile
from forge.domain.digest import canonical
from forge.errors import WorkspaceNotFound
from forge.events.run import RunSealed
from forge.ledger.audit.history import audit
from forge.ledger.audit.referenced_blobs import required_blobs
from forge.ledger.audit.report import AuditReport
from forge.ledger.blobs import BlobStore
from forge.ledger.chain import StoredRow, event_hash
from forge.ledger.runs.directory import RunDirectory
from forge.ledger.store import Ledger

from .making import create, duplicated, examples, fill, new_id, now, open_ledger

Tamper = Callable[[str], None]
RUN_ID = "20260301T120000_rmsnorm_cpu_0a1b2c"


@pytest.fixture
def filled(path: Path) -> Path:
    with open_ledger(path) as ledger:
        fill(ledger, 4)
        ledger.append(
            list(examples().values()),
            actor="cli:ada",
            correlation_id="r",
            idempotency_key="all",
            causation_id="x",
        )
    return path


def first(report: AuditReport) -> tuple[int | None, str]:
    assert not report.ok
    return report.problems[0].seq, report.problems[0].what


def test_an_untouched_ledger_of_every_event_type_is_sound(filled: Path) -> None:
    report = audit(filled)
    with open_ledger(filled, read_only=True) as ledger:
        head = ledger.head
        with ledger.tree() as tree:
            root = tree.root().hex()
    assert report == AuditReport(
        ok=True, events=head.seq, head=head.event_hash, root=root, signed=0, checkpoint=None, problems=()
    )


def test_a_ledger_can_be_audited_while_it_is_written(ledger: Ledger, path: Path) -> None:
    fill(ledger, 3)
    assert audit(path).events == 4


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("event_id", "'019554d0-9c00-7abc-8def-ffffffffffff'", "event_hash"),
        ("stream", "'kernel:x'", "event_hash"),
        ("stream_version", "500", "event_hash"),
        ("type", "'KernelRevoked'", "event_hash"),
        ("schema_version", "2", "event_hash"),
        ("recorded_at", "'2020-01-01T00:00:00.000000Z'", "event_hash"),
        ("actor", "'cli:eve'", "event_hash"),
        ("correlation_id", "'other'", "event_hash"),
        ("causation_id", "NULL", "event_hash"),
        ("causation_id", "'other'", "event_hash"),
        ("idempotency_key", "NULL", "event_hash"),
        ("idempotency_key", "'other#0'", "event_hash"),
        ("payload", "replace(payload, 'a', 'b')", "payload_sha256"),
        ("payload", "payload || ' '", "payload_sha256"),
        ("payload_sha256", "zeroblob(32)", "payload_sha256"),
        ("prev_hash", "zeroblob(32)", "prev_hash"),
        ("event_hash", "zeroblob(32)", "event_hash"),
        ("payload_sha256", "x'00'", "payload_sha256"),
        ("actor", "CAST(x'ff3a41' AS TEXT)", "actor"),
    ],
)
def test_an_edit_of_any_column_is_named_at_its_row(
    column: str, value: str, what: str, filled: Path, tamper: Tamper
) -> None:
    tamper(f"UPDATE event SET {column} = {value} WHERE seq = 7")
    assert first(audit(filled)) == (7, what)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("DELETE FROM event WHERE seq = 7", (8, "seq")),
        ("DELETE FROM event WHERE seq = 1", (2, "seq")),
        (
            "UPDATE event SET seq = 1000 WHERE seq = 7; UPDATE event SET seq = 7 WHERE seq = 8;"
            "UPDATE event SET seq = 8 WHERE seq = 1000",
            (7, "prev_hash"),
        ),
        (
            "UPDATE event SET payload = (SELECT payload FROM event WHERE seq = 3) WHERE seq = 2",
            (2, "payload_sha256"),
        ),
        (
            "UPDATE event SET (payload, payload_sha256) ="
            " (SELECT payload, payload_sha256 FROM event WHERE seq = 3) WHERE seq = 2",
            (2, "event_hash"),
        ),
        ("UPDATE ledger_meta SET ledger_id = 'another'", (None, "database")),
        ("UPDATE ledger_meta SET genesis_hash = zeroblob(32)", (None, "database")),
        ("UPDATE ledger_meta SET origin = 'elsewhere'", (1, "LedgerOpened")),
        ("DELETE FROM ledger_meta", (None, "database")),
        ("DELETE FROM event", (None, "events")),
        ("PRAGMA application_id = 7", (None, "application id")),
    ],
    ids=[
        "middle deleted",
        "first deleted",
        "two swapped",
        "payload swapped",
        "payload and digest swapped",
        "renamed",
        "another genesis",
        "another origin",
        "nameless",
        "emptied",
        "another application",
    ],
)
def test_reordering_deleting_and_swapping_are_named(
    sql: str, found: tuple[int | None, str], filled: Path, tamper: Tamper
) -> None:
    tamper(sql)
    assert first(audit(filled)) == found


def rehash(path: Path, seq: int, **change: object) -> None:
    """Edit one row and give it, and it alone, the right hashes: what someone careful would do first."""
    with closing(sqlite3.connect(path)) as connection:
        row = StoredRow._make(connection.execute("SELECT * FROM event WHERE seq = ?", (seq,)).fetchone())
        row = row._replace(**change)
        row = row._replace(payload_sha256=hashlib.sha256(row.payload.encode()).digest())
        connection.execute(
            "UPDATE event SET payload = ?, payload_sha256 = ?, actor = ?, stream_version = ?, event_hash = ?"
            " WHERE seq = ?",
            (row.payload, row.payload_sha256, row.actor, row.stream_version, event_hash(row), seq),
        )
        connection.commit()


@pytest.fixture
def unguarded(filled: Path, tamper: Tamper) -> Path:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("DROP TRIGGER event_refuses_update")
    return filled


def test_a_row_edited_with_its_hashes_breaks_the_link_to_the_next(unguarded: Path) -> None:
    rehash(unguarded, 7, actor="cli:eve")
    assert first(audit(unguarded)) == (8, "prev_hash")


@pytest.mark.parametrize(
    "text",
    [
        '{"b":1,"a":2}',
        '{"a": 1}',
        '{"a":1,"a":2}',
        '{"a":"\\u00e9"}',
        '{"a":NaN}',
        "[]",
        "{]",
        '{"a":' * 3000,
    ],
    ids=["unsorted", "a space", "a key twice", "needless escape", "NaN", "no object", "no JSON", "deep"],
)
def test_a_payload_in_another_form_is_named_even_when_every_hash_fits(text: str, unguarded: Path) -> None:
    last = audit(unguarded).events
    rehash(unguarded, last, payload=text)
    assert first(audit(unguarded)) == (last, "payload")


def test_a_payload_in_another_form_is_named_after_any_number_of_sound_ones_like_it(path: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 250)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER event_refuses_update")
        (text,) = connection.execute("SELECT payload FROM event WHERE seq = 251").fetchone()
    for other in (text.replace(":", ": ", 1), text.replace("{", '{"z":1,', 1)):
        assert other != text
        rehash(path, 251, payload=other)
        assert first(audit(path)) == (251, "payload")
    rehash(path, 251, payload=text)
    assert [problem.what for problem in audit(path).problems] == ["trigger event_refuses_update"]


DIGESTS = st.sampled_from(["a" * 64, "b" * 64, "no digest"])


@settings(max_examples=100, deadline=None)
@given(
    document=st.dictionaries(
        st.sampled_from(["x", "sha256", "a_sha256", 'b"sha256', "é:sha256", "sha256\\"]),
        st.recursive(
            DIGESTS | st.none() | st.integers(0, 9),
            lambda inner: (
                st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["y", "sha256"]), inner, max_size=2)
            ),
            max_leaves=5,
        ),
    )
)
def test_a_payload_that_names_a_digest_is_always_read(document: dict[str, object]) -> None:
    from forge.ledger.audit.evidence import EvidenceCheck, _digest_fields

    if list(_digest_fields(document)):
        assert EvidenceCheck(Path("nowhere")).asks(b"Other", canonical(document))


def test_a_full_audit_of_a_sound_ledger_says_the_same(filled: Path) -> None:
    assert audit(filled, full=True) == audit(filled)


JSON_TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
).flatmap(
    lambda node: st.sampled_from(
        [
            json.dumps(node),
            json.dumps({"b": node, "a": node}, separators=(",", ":"), ensure_ascii=False),
            json.dumps({"b": node, "a": node}, separators=(",", ":"), ensure_ascii=False, sort_keys=True),
        ]
    )
)


@settings(max_examples=200, deadline=None)
@given(text=JSON_TEXTS)
def test_the_quick_look_at_a_payload_accepts_nothing_that_the_thorough_one_refuses(text: str) -> None:
    from forge.ledger.audit.payload import canonical_text, quick_document

    try:
        payload = text.encode()
    except UnicodeEncodeError:
        return
    found = quick_document(payload)
    if found is not None:
        assert canonical_text(text)[1] == text


ENVELOPE_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=100, deadline=None)
@given(text=ENVELOPE_TEXTS, other=st.none() | ENVELOPE_TEXTS, number=st.integers(-(2**63), 2**63 - 1))
def test_the_quick_look_at_an_envelope_never_differs_from_the_thorough_one(
    text: str, other: str | None, number: int
) -> None:
    from forge.ledger.audit.envelope import COLUMNS, derived_hash, quick_hash

    digest, said = bytes(range(32)), text.encode()
    cause = None if other is None else other.encode()
    row = (number, said, b"s:1", 1, b"T", number, said, b"a", said, cause, cause, b"{}", digest, digest, digest)
    quick = quick_hash(row)
    thorough = derived_hash(dict(zip(COLUMNS, row, strict=True)))
    assert quick is None or quick.hex() == thorough
    plain = text.isascii() and text.isprintable() and not set(text) & {'"', "\\"}
    if plain and other is None:
        assert quick is not None


@pytest.mark.parametrize("column", range(14))
def test_a_row_with_a_value_of_another_kind_gets_a_closer_look(column: int) -> None:
    from forge.ledger.audit.envelope import quick_hash

    row: list[object] = [1, b"i", b"s:1", 1, b"T", 1, b"at", b"a", b"c", b"e", b"k", b"{}", bytes(32), bytes(32), b""]
    assert quick_hash(tuple(row)) is not None
    row[column] = 1.5
    assert quick_hash(tuple(row)) is None or column == 11  # the payload stands in the envelope by its digest


def test_a_stream_version_out_of_step_is_named_even_when_every_hash_fits(unguarded: Path) -> None:
    last = audit(unguarded).events
    rehash(unguarded, last, stream_version=900)
    seq, what = first(audit(unguarded))
    assert seq == last
    assert what.startswith("stream_version of")


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    number=st.floats(allow_nan=False, allow_infinity=False),
)
def test_the_audit_renders_what_the_writer_rendered(text: str, number: float) -> None:
    from forge.ledger.audit import payload as auditing

    written = canonical({"k": text, "n": number, "l": [None, True, -1], "d": {"b": 1, "a": ""}}).decode()
    parsed = json.loads(written, parse_float=auditing._Number, parse_int=auditing._Number)
    assert auditing.render(parsed) == written


def test_a_missing_trigger_is_named(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("DROP TRIGGER event_accepts_only_the_next")
    assert first(audit(filled)) == (None, "trigger event_accepts_only_the_next")


def test_a_changed_schema_is_named(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("CREATE VIEW kernels AS SELECT 1")
    assert first(audit(filled)) == (None, "schema")


def test_a_damaged_index_is_found_though_every_row_is_sound(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        page = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_event_correlation_id_seq'"
        ).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(filled.read_bytes())
    start = (page - 1) * size
    place = content.index(b"fill", start, start + size)
    content[place : place + 4] = b"gone"
    filled.write_bytes(content)
    assert first(audit(filled)) == (None, "integrity_check")


def test_a_file_that_is_no_database_is_reported_and_an_absent_one_raises(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    with pytest.raises(WorkspaceNotFound):
        audit(path)
    path.write_bytes(b"nothing of the kind" * 100)
    assert first(audit(path)) == (None, "database")


def test_a_truncated_file_is_reported(filled: Path) -> None:
    os.truncate(filled, filled.stat().st_size // 8192 * 4096)
    assert not audit(filled).ok


def test_the_chains_of_two_ledgers_cannot_be_spliced(filled: Path, tmp_path: Path, tamper: Tamper) -> None:
    with Ledger.create(
        tmp_path / "other.db",
        ledger_id="other",
        origin="kernels/example",
        forge_version="0.1.0",
        now=now,
        new_id=new_id,
    ):
        pass
    tamper(
        f"ATTACH '{tmp_path / 'other.db'}' AS other; DELETE FROM event WHERE seq = 1;"
        "INSERT INTO event SELECT * FROM other.event"
    )
    assert first(audit(filled)) == (1, "prev_hash")


def test_the_audit_imports_neither_the_writer_nor_its_libraries() -> None:
    code = (
        "import sys, forge.ledger.audit.history as a; "
        "bad = {'sqlmodel', 'sqlalchemy', 'pydantic', 'orjson', 'alembic', 'forge.ledger.store',"
        " 'forge.ledger.chain', 'forge.ledger.schema', 'forge.domain.digest', 'forge.ledger.tree',"
        " 'forge.ledger.merkle', 'forge.ledger.signatures.signing'} & set(sys.modules); "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def evidence(path: Path, tmp_path: Path) -> Path:
    """A `forge_runs` whose every blob and run directory is there, and the ledger that names them."""
    runs = tmp_path / "forge_runs"
    blobs = BlobStore(runs / "cas")
    files = (CandidateFile(path="kernel.py", sha256=blobs.put(b"def f(): ..."), size_bytes=12),)
    candidate = Candidate(files=files, language="cpp", entry_point="f")
    submitted = examples()["CandidateSubmitted"].model_copy(
        update={"files": candidate, "candidate": candidate.sha256}
    )
    verified = examples()["CandidateVerified"].model_copy(
        update={
            "report_sha256": blobs.put(b"report"),
            "policy_sha256": blobs.put(b"policy"),
            "artifact_sha256": None,
        }
    )
    prompt = examples()["PromptRendered"].model_copy(
        update={"rendered_sha256": blobs.put(b"brief"), "template_sha256": blobs.put(b"template")}
    )
    run = RunDirectory.create(runs, RUN_ID)
    run.write("candidate/kernel.py", b"def f(): ...")
    run.write("task.json", b"{}")
    sealed = run.seal()
    with open_ledger(path) as ledger:
        ledger.append(
            [
                submitted,
                verified,
                prompt,
                RunSealed(run_id=RUN_ID, outcome="promoted", manifest_sha256=sealed.manifest_sha256),
            ],
            actor="cli:ada",
            correlation_id=RUN_ID,
        )
    assert audit(path, runs=runs).ok, audit(path, runs=runs).problems
    return runs


@pytest.mark.parametrize(
    ("name", "field", "given"),
    [
        ("RunStarted", "policy_sha256", "{}"),
        ("CandidateRejected", "report_sha256", "{}"),
        ("CandidateRejected", "counterexample_sha256", "{}"),
        ("KernelRevoked", "evidence", "sha256:{}"),
    ],
)
def test_what_an_event_stands_on_is_missed(name: str, field: str, given: str, path: Path, tmp_path: Path) -> None:
    runs, content = tmp_path / "forge_runs", f"what {name} stands on".encode()
    said = given.format(BlobStore(runs / "cas").put(content))
    nothing: dict[str, object] = {"report_sha256": None, "counterexample_sha256": None}
    update = {one: value for one, value in nothing.items() if one in type(examples()[name]).model_fields}
    update[field] = (said, f"event:1:{'0' * 64}", "a remark") if field == "evidence" else said
    with open_ledger(path) as ledger:
        ledger.append([examples()[name].model_copy(update=update)], actor="cli:ada", correlation_id="c")
    assert audit(path, runs=runs).ok, audit(path, runs=runs).problems
    blob(runs, content).unlink()
    what = f"blob {field}[]" if field == "evidence" else f"blob {field}"
    assert first(audit(path, runs=runs)) == (2, what)


def test_a_refusal_of_the_first_version_names_no_report() -> None:
    payload = {"counterexample_sha256": None}
    assert list(required_blobs("CandidateRejected", 1, payload)) == []
    assert list(required_blobs("CandidateRejected", 2, payload)) == [("report_sha256", "no such field")]


def blob(runs: Path, content: bytes) -> Path:
    return BlobStore(runs / "cas").path(hashlib.sha256(content).hexdigest())


def overwrite(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("content", "seq", "what"),
    [
        (b"def f(): ...", 2, "blob files.files[].sha256"),
        (b"report", 3, "blob report_sha256"),
        (b"brief", 4, "blob rendered_sha256"),
    ],
)
def test_a_missing_or_edited_blob_is_named_with_its_event(
    content: bytes, seq: int, what: str, evidence: Path, path: Path
) -> None:
    overwrite(blob(evidence, content), content + b"!")
    report = audit(path, runs=evidence)
    assert first(report) == (seq, what)
    assert report.problems[0].found == hashlib.sha256(content + b"!").hexdigest()
    blob(evidence, content).unlink()
    assert audit(path, runs=evidence).problems[0].found == "missing"
    assert audit(path).ok


def test_a_blob_that_is_a_link_counts_as_missing(evidence: Path, path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"report")
    blob(evidence, b"report").unlink()
    blob(evidence, b"report").symlink_to(tmp_path / "elsewhere")
    assert first(audit(path, runs=evidence)) == (3, "blob report_sha256")


def test_a_digest_that_need_not_be_stored_must_fit_if_it_is(evidence: Path, path: Path) -> None:
    blob(evidence, b"template").unlink()
    assert audit(path, runs=evidence).ok
    blob(evidence, b"template").write_bytes(b"another")
    assert first(audit(path, runs=evidence)) == (4, "blob template_sha256")


def add_link(run: Path) -> None:
    (run / "link").symlink_to("/etc/hostname")


def add_folder_link(run: Path) -> None:
    (run / "folder").symlink_to("/etc")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda run: overwrite(run / "task.json", b"[]"), "task.json"),
        (lambda run: (run / "candidate/kernel.py").unlink(), "candidate/kernel.py"),
        (lambda run: (run / "extra").write_bytes(b""), "extra"),
        (add_link, "link"),
        (add_folder_link, "folder"),
        (lambda run: overwrite(run / "manifest.json", b"{}"), "manifest.json"),
        (lambda run: (run / "manifest.json").unlink(), "manifest.json"),
        (lambda run: run.rename(run.with_name("gone")), "manifest.json"),
    ],
    ids=[
        "edited",
        "missing",
        "unknown",
        "link",
        "linked folder",
        "manifest edited",
        "manifest missing",
        "moved",
    ],
)
def test_a_run_directory_that_is_not_what_was_sealed_is_named(
    change: Callable[[Path], object], what: str, evidence: Path, path: Path
) -> None:
    change(evidence / RUN_ID)
    assert first(audit(path, runs=evidence)) == (5, f"run {RUN_ID}/{what}")


def test_a_run_id_that_leads_elsewhere_is_not_followed(evidence: Path, path: Path) -> None:
    manifest = (evidence / RUN_ID / "manifest.json").read_bytes()
    with open_ledger(path) as ledger:
        for run_id in ("../forge_runs/" + RUN_ID, "..", "/etc", ".tmp-x"):
            ledger.append(
                [RunSealed(run_id=run_id, outcome="x", manifest_sha256=hashlib.sha256(manifest).hexdigest())],
                actor="cli:ada",
                correlation_id="c",
            )
    found = audit(path, runs=evidence).problems
    assert [problem.seq for problem in found] == [6, 7, 8, 9]
    assert {problem.expected for problem in found} == {"the name of a folder"}


def test_an_audit_of_a_ruin_stops_early_and_says_so(path: Path, tamper: Tamper) -> None:
    with open_ledger(path) as ledger:
        ledger.append([duplicated(number) for number in range(1100)], actor="cli:ada", correlation_id="c")
    tamper("UPDATE event SET actor = 'cli:eve'")
    report = audit(path)
    assert 1000 <= len(report.problems) < 1010
    assert report.events < 1101


def test_two_new_ledgers_differ_only_by_their_names(tmp_path: Path) -> None:
    for name in ("a", "b"):
        create(tmp_path / name).close()
    assert audit(tmp_path / "a").head != audit(tmp_path / "b").head


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("DELETE FROM alembic_version", "alembic_version"),
        ("DROP TABLE alembic_version", "alembic_version"),
        ("UPDATE alembic_version SET version_num = '0001'", "alembic_version"),
        ("INSERT INTO alembic_version VALUES ('0002')", "alembic_version"),
        ("CREATE TABLE _litestream_notes (text)", "schema of _litestream_notes"),
        ("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER, more)", "schema of _litestream_seq"),
    ],
)
def test_a_tools_table_that_is_not_as_the_tool_makes_it_is_named(sql: str, what: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.commit()
    assert first(audit(path)) == (None, what)


def test_the_tables_of_tools_as_the_tools_make_them_are_let_be(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "ANALYZE; CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);"
            "CREATE TABLE _litestream_lock (id INTEGER);"
        )
    assert audit(path).ok


def test_a_sealed_run_behind_a_symbolic_link_is_named(path: Path, evidence: Path, tmp_path: Path) -> None:
    (evidence / RUN_ID).rename(tmp_path / "elsewhere")
    (evidence / RUN_ID).symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert first(audit(path, runs=evidence)) == (5, f"run {RUN_ID}")
