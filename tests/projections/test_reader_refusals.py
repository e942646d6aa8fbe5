"""That readers take every payload as it was ever written, and no other spelling of one."""

from pathlib import Path

import pytest

from forge.events import parse_event
from forge.projections.reader_refusals import _as_written_then
from tests.ledger.making import GOLDEN

PAYLOADS = sorted(GOLDEN.glob("*.json"))


@pytest.mark.parametrize("golden", PAYLOADS, ids=lambda path: path.stem)
def test_a_payload_of_any_version_is_spelled_as_it_was_written(golden: Path) -> None:
    name, version, _ = golden.name.split(".")
    payload = golden.read_text().strip()
    assert _as_written_then(payload, parse_event(name, int(version[1:]), payload)) == payload


def test_an_old_payload_in_another_spelling_is_not() -> None:
    payload = (GOLDEN / "BenchmarkRecorded.v1.json").read_text().strip()
    other = payload.replace('"attempt":1,', '"attempt":1.0,')
    assert other != payload
    assert _as_written_then(other, parse_event("BenchmarkRecorded", 1, other)) == payload
