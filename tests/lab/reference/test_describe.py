"""What a guest says of a reference file is foreign code's word: whole and in its bounds, or the file is refused."""

import json

import pytest

from forge.domain.policy import Policy
from forge.errors import ReferenceRefused
from forge.lab.reference.describe import Declared, SubmittedReference, parse_description
from forge.lab.reference.room import most_set_bytes
from tests.lab.reference.references import POLICY

X = {"name": "x", "literal": None, "dtype": "float32", "sizes": [4, 8]}
LIST = {"name": "c", "literal": "[...]", "dtype": None, "sizes": None}
SAID = {
    "form": "function",
    "entry": "kernel",
    "init": "[]",
    "arguments": [X],
    "states": [],
    "results": [{"dtype": "float32", "sizes": [4, 8]}],
    "returned": "...",
    "generator": True,
}
STATE = {"dtype": "float32", "sizes": [2], "parameter": True}
FORGED: dict[str, dict[str, object]] = {
    "a tensor without a type": {"arguments": [{**X, "dtype": None}]},
    "a tensor without sizes": {"arguments": [{**X, "sizes": None}]},
    "a negative size": {"arguments": [{**X, "sizes": [-1]}]},
    "a size past every memory": {"arguments": [{**X, "sizes": [2**40]}]},
    "more axes than a reply has room for": {"arguments": [{**X, "sizes": [1] * 9}]},
    "a name that is a path": {"arguments": [{**X, "name": "../x"}]},
    "a name with control characters": {"arguments": [{**X, "name": "x\x1b[2J"}]},
    "a type with control characters": {"arguments": [{**X, "dtype": "\x1b[31mfloat32"}]},
    "a thousand operands": {"arguments": [X] * 1000},
    "a state with a path": {"states": [{**STATE, "names": ["a/../b"]}]},
    "a state in other letters": {"states": [{**STATE, "names": ["gewicht.größe"]}]},
    "a state with more names than are kept": {"states": [{**STATE, "names": [f"n{i}" for i in range(65)]}]},
    "a list that lacks a tensor": {"arguments": [X, LIST]},
    "a list with one tensor too many": {"arguments": [LIST, *[{**X, "within": "c", "name": n} for n in "yz"]]},
    "a tensor in no list": {"arguments": [{**X, "within": "c"}]},
    "a tensor in another list": {"arguments": [LIST, {**X, "within": "d"}]},
    "two operands of one name": {"arguments": [X, X]},
    "a named initialisation that is no dictionary": {"init_named": "[1]"},
    "no generator and no operands": {"generator": False},
    "an initialisation that is no list": {"init": "5"},
    "an initialisation that can't be hashed": {"init": "[{{1}}]"},
    "an initialisation that nests too deep": {"init": "-" * 4000 + "1"},
    "an initialisation that is a call": {"init": "[open('/etc/passwd')]"},
    "a field of its own": {"tolerance": 1.0},
}


def question(operands: tuple[Declared, ...] = ()) -> SubmittedReference:
    return SubmittedReference(source=b"", name="a_reference.py", dtype="fp32", operands=operands)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_description_is_refused_in_one_harmless_line(name: str) -> None:
    with pytest.raises(ReferenceRefused) as refused:
        parse_description(question(), json.dumps({**SAID, **FORGED[name]}).encode(), POLICY)
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 500


@pytest.mark.parametrize("untrusted", [b"", b"nan", b"3", b"[" * 10000, b'{"problem": 3}', b"\xff", b'"\\ud800"'])
def test_what_is_no_description_at_all_is_refused(untrusted: bytes) -> None:
    with pytest.raises(ReferenceRefused):
        parse_description(question(), untrusted, POLICY)


def test_a_problem_is_shown_without_its_control_characters_and_cut() -> None:
    said = {"problem": {"code": "forward", "text": "\x1b[31m" + "A" * 100_000}}
    with pytest.raises(ReferenceRefused) as refused:
        parse_description(question(), json.dumps(said).encode(), POLICY)
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 500


def test_the_room_that_a_reference_has_follows_the_policy() -> None:
    said = json.dumps({"problem": {"code": "room", "text": str(3 * 2**30)}}).encode()
    roomy = Policy(memory_limit_bytes=32 * 2**30)
    assert (most_set_bytes(Policy()), most_set_bytes(roomy)) == (2**30, 2**32)
    with pytest.raises(
        ReferenceRefused, match=r"needs 3221225472 bytes.*at most 1073741824.*raise memory_limit_bytes"
    ):
        parse_description(question(), said, Policy())


def test_as_many_tensors_as_were_declared_are_taken() -> None:
    x, y = (Declared(name=name, dtype="float32", sizes=(4, 8)) for name in "xy")
    assert len(parse_description(question((x,)), json.dumps(SAID).encode(), POLICY).arguments) == 1
    with pytest.raises(ReferenceRefused, match="expected the 2 that are declared"):
        parse_description(question((x, y)), json.dumps({**SAID, "generator": False}).encode(), POLICY)
