"""One stored payload per (type, version), never edited: what was written once is readable for ever."""

import hashlib
from pathlib import Path

import pytest

from forge.domain.digest import canonical
from forge.errors import LedgerCorrupt
from forge.events import EVENT_TYPES, parse_event
from forge.events.kinds import KINDS
from forge.events.upcast import Payload, upcast

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.json"))


def named(path: Path) -> tuple[str, int]:
    type_name, version, _ = path.name.split(".")
    return type_name, int(version.removeprefix("v"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stored_payload_parses_and_renders_to_the_same_bytes(path: Path) -> None:
    type_name, version = named(path)
    stored = path.read_bytes()
    event = parse_event(type_name, version, stored)
    assert type(event) is EVENT_TYPES[type_name]
    if version == KINDS[type_name].version:
        assert canonical(event) == stored


def test_every_type_has_a_stored_payload_of_every_version() -> None:
    expected = {(name, version) for name, kind in KINDS.items() for version in range(1, kind.version + 1)}
    assert {named(path) for path in FILES} == expected


def test_no_stored_payload_was_edited() -> None:
    lines = (GOLDEN / "SHA256SUMS").read_text().splitlines()
    pinned = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FILES} == pinned


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_payload_with_an_unknown_field_is_refused(path: Path) -> None:
    type_name, version = named(path)
    with pytest.raises(LedgerCorrupt):
        parse_event(type_name, version, path.read_bytes()[:-1] + b',"zz_unknown":1}')


def test_an_unknown_type_or_a_newer_version_is_refused() -> None:
    with pytest.raises(LedgerCorrupt, match="unknown event type"):
        parse_event("KernelBlessed", 1, b"{}")
    for version in (0, 99):
        with pytest.raises(LedgerCorrupt, match="schema version"):
            parse_event("RunAborted", version, b'{"reason":"x","run_id":"y"}')


def test_old_payloads_pass_through_every_step_in_order_and_stay_as_they_were() -> None:
    def rename(payload: Payload) -> Payload:
        payload["reason"] = payload.pop("why")
        return payload

    def add(payload: Payload) -> Payload:
        return payload | {"by": "nobody"}

    old: Payload = {"why": "power"}
    steps = {("RunAborted", 1): rename, ("RunAborted", 2): add}
    assert upcast("RunAborted", 1, old, to_version=3, steps=steps) == {"reason": "power", "by": "nobody"}
    assert upcast("RunAborted", 2, {"reason": "x"}, to_version=3, steps=steps) == {
        "reason": "x",
        "by": "nobody",
    }
    assert old == {"why": "power"}
    with pytest.raises(KeyError):
        upcast("RunAborted", 1, old, to_version=4, steps=steps)
