import hashlib
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from forge.ledger.chain import StoredRow, envelope, event_hash, genesis_hash, sealed

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
HASH = st.binary(min_size=32, max_size=32)
ROWS = st.builds(
    StoredRow,
    seq=st.integers(1, 2**62),
    event_id=TEXT,
    stream=TEXT,
    stream_version=st.integers(1, 2**62),
    type=TEXT,
    schema_version=st.integers(1, 99),
    recorded_at=TEXT,
    actor=TEXT,
    correlation_id=TEXT,
    causation_id=st.none() | TEXT,
    idempotency_key=st.none() | TEXT,
    payload=TEXT,
    payload_sha256=HASH,
    prev_hash=HASH,
    event_hash=HASH,
)


def test_a_known_row_has_its_known_envelope_and_hash() -> None:
    """Pinned: a reader derives the same bytes from the documentation alone, now and in ten years."""
    row = StoredRow(
        seq=2,
        event_id="019554d0-9c00-7abc-8def-0123456789ab",
        stream="run:é",
        stream_version=1,
        type="RunAborted",
        schema_version=1,
        recorded_at="2026-03-01T12:00:00.000000Z",
        actor="system:recovery",
        correlation_id="r",
        causation_id=None,
        idempotency_key="k#0",
        payload="{}",
        payload_sha256=bytes(32),
        prev_hash=b"\xff" * 32,
        event_hash=b"",
    )
    expected = (
        '{"actor":"system:recovery","causation_id":null,"correlation_id":"r",'
        '"event_id":"019554d0-9c00-7abc-8def-0123456789ab","idempotency_key":"k#0",'
        '"payload_sha256":"' + "00" * 32 + '","prev_hash":"' + "ff" * 32 + '",'
        '"recorded_at":"2026-03-01T12:00:00.000000Z","schema_version":1,"seq":2,'
        '"stream":"run:é","stream_version":1,"type":"RunAborted"}'
    ).encode()
    assert envelope(row) == expected
    assert event_hash(row) == hashlib.sha256(b"\x00" + expected).digest()
    assert sealed(row).event_hash == event_hash(row)


def test_the_genesis_hash_names_the_format_and_the_ledger() -> None:
    assert genesis_hash("abc") == hashlib.sha256(b"forge.ledger.v1\nabc").digest()
    assert genesis_hash("abc") != genesis_hash("abd")


@settings(max_examples=50, deadline=None)
@given(row=ROWS)
def test_the_standard_librarys_json_gives_the_same_envelope(row: StoredRow) -> None:
    columns: dict[str, object] = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in row._asdict().items()
        if name not in ("payload", "event_hash")
    }
    text = json.dumps(columns, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert envelope(row) == text.encode()


@settings(max_examples=50, deadline=None)
@given(row=ROWS, other=ROWS)
def test_every_column_changes_the_hash(row: StoredRow, other: StoredRow) -> None:
    for column in (name for name in StoredRow._fields if name not in ("payload", "event_hash")):
        changed = row._replace(**{column: getattr(other, column)})
        assert (event_hash(changed) == event_hash(row)) == (changed == row), column
