"""That an outline decides nothing which reading the payload wouldn't: nothing else is accepted, and nothing less."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.ledger.audit.outline import Outlines
from forge.ledger.audit.payload import canonical_text, quick_document

TRICKY = st.text(':,{}[]" \\0a5-e.\n\x00é\x7f', max_size=3)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TRICKY
DOCUMENTS = st.dictionaries(
    TRICKY,
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY, inner, max_size=3), max_leaves=6
    ),
    max_size=4,
)
PIECES = (
    *('"', '":', '":5,', '":5}', ':"', '""', ",", "{", "}", "[", "]", ":", "a", '"a":', '"a:"', '"b":1,', '"":'),
    *("0", "-0", "-0.0", "1E5", "1e999", "9" * 5000, "NaN", "-Infinity", "01", "1.", "null", "true"),
    *(" ", "\n", "\t", "\x00", "\\", "\\u00e9", "\\n", "\\/", "\\ud800", "\ud800"),
)
EDITS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3), st.sampled_from(PIECES)), max_size=3)


def read(payload: bytes) -> bool:
    """Whether reading the payload, as if there were no outlines, finds it canonical."""
    if quick_document(payload) is not None:
        return True
    try:
        text = payload.decode()
        document, canonical = canonical_text(text)
    except (ValueError, RecursionError):
        return False
    return canonical == text and isinstance(document, dict)


def fits(outlines: Outlines, text: str) -> bool:
    return outlines.fit(b"T", text.encode(errors="surrogatepass"))


@settings(max_examples=150, deadline=None)
@given(document=DOCUMENTS, edits=EDITS)
def test_what_fits_an_outline_is_canonical_when_it_is_read(
    document: dict[str, object], edits: list[tuple[int, int, str]]
) -> None:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    outlines = Outlines(pattern_after=2)
    for _ in range(3):  # unseen, seen, and by its pattern
        if fits(outlines, text):
            assert read(text.encode())
    edited = text
    for place, length, piece in edits:
        edited = edited[:place] + piece + edited[place + length :]
        payload = edited.encode(errors="surrogatepass")
        for judge in (outlines, Outlines()):
            if judge.fit(b"T", payload):
                assert read(payload)


ORDINARY = '{"a":{"b":"x","c":1},"d":[1,"y"],"e":null}'


@pytest.mark.parametrize("often", [2, 1000], ids=["by pattern", "by outline"])
@pytest.mark.parametrize(
    "text",
    [
        '{"a":{"b":"","c":0},"d":[1,"y"],"e":null}',
        '{"a":{"b":"another, longer: {text}","c":-7},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":1.5e-7},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":-0},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":1E5},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":' + "9" * 5000 + '},"d":[1,"y"],"e":null}',
        '{"a":{"b":"\x7f","c":1},"d":[1,"y"],"e":null}',
    ],
)
def test_a_payload_that_differs_in_values_alone_fits(text: str, often: int) -> None:
    outlines = Outlines(pattern_after=often)
    assert all(fits(outlines, ORDINARY) for _ in range(3))
    assert read(text.encode())
    assert fits(outlines, text)


@pytest.mark.parametrize("often", [2, 1000], ids=["by pattern", "by outline"])
@pytest.mark.parametrize(
    "text",
    [
        '{"a":{"c":1,"b":"x"},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","b":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":01},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":NaN},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":1.},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x" ,"c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":1},"d":[1,"y"],"e":null}\n',
        '{"a":{"b":"\\u00e9","c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"\\ud800","c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"\ud800","c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"\x00","c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"\n","c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x"y","c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x\\","c":1},"d":[1,"y"],"e":null}',
        '{"a":{"b":"x","c":1},"d":[1,"y"],"e":null',
        '[{"a":{"b":"x","c":1},"d":[1,"y"],"e":null}]',
    ],
)
def test_a_payload_in_another_form_fits_no_outline(text: str, often: int) -> None:
    outlines = Outlines(pattern_after=often)
    assert all(fits(outlines, ORDINARY) for _ in range(3))
    assert not read(text.encode(errors="surrogatepass"))
    assert not fits(outlines, text)


@pytest.mark.parametrize(
    ("sound", "forged"),
    [
        ('{":3,b":0,":5,b":0}', '{":5,b":0,":3,b":0}'),
        ('{"x:3,":0,"x:5,":0}', '{"x:5,":0,"x:3,":0}'),
        ('{"a:":"b","c":"d"}', '{"a:"5"b","c":"d"}'),
        ('{"a":":","b":"c"}', '{"a":":"5"b":"c"}'),
        ('{"k":["a:","b"]}', '{"k":["a:"x"b"]}'),
    ],
)
def test_keys_and_strings_with_signs_in_them_hide_no_other_form(sound: str, forged: str) -> None:
    outlines = Outlines(pattern_after=2)
    for _ in range(4):
        fits(outlines, sound)
    assert read(sound.encode())
    assert not read(forged.encode())
    assert not fits(outlines, forged)


def test_more_outlines_than_are_kept_change_no_answer() -> None:
    outlines = Outlines()
    for number in range(1100):
        assert fits(outlines, f'{{"a{number}":1}}')
        assert not fits(outlines, f'{{"a{number}": 1}}')
    assert fits(outlines, '{"a0":2}')
