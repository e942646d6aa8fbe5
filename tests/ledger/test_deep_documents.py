"""Documents that are nested deeper than Python calls itself are problems of an audit, and no traceback."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forge.ledger.audit.evidence import _digest_fields, _listed
from forge.ledger.audit.numbers import Numbers
from forge.ledger.audit.published import Published
from forge.ledger.audit.published_models import FILE, PublishedModels

DEEP = b"[" * 16_000
DIGEST = "0" * 64


def test_a_payload_that_is_nested_deeply_has_no_numbers(tmp_path: Path) -> None:
    (found,) = Numbers(tmp_path).problems([(1, b"BenchmarkRecorded", DEEP)])
    assert "RecursionError" in found.found


def test_published_documents_that_are_nested_deeply_have_no_form(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(DEEP)
    (tmp_path / "current.json").write_bytes(DEEP)
    (tmp_path / "leaderboard.json").write_bytes(DEEP)
    (found,) = PublishedModels(tmp_path).problems()
    assert "RecursionError" in found.found
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE event (seq, type, payload, recorded_at)")
        named = {one.what for one in Published(tmp_path).problems(connection)}
    assert {"published current.json", "published leaderboard.json"} <= named


def test_digests_are_found_at_any_depth() -> None:
    node: dict[str, object] = {"sha256": DIGEST}
    for _ in range(5000):
        node = {"inner": [node]}
    assert list(_digest_fields(node)) == [("sha256", DIGEST)]


@pytest.mark.parametrize("manifest", [DEEP, b'{"files": ' + DEEP])
def test_a_manifest_that_is_nested_deeply_lists_nothing(manifest: bytes) -> None:
    assert "RecursionError" in str(_listed(manifest))
