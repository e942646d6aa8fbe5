from hypothesis import given
from hypothesis import strategies as st

from forge.sandbox.log import Log, harmless

MARK_BYTES = 64


@given(st.lists(st.binary(max_size=300)), st.integers(min_value=1, max_value=200))
def test_a_log_never_exceeds_its_limit_and_holds_nothing_unprintable(pieces: list[bytes], limit_bytes: int) -> None:
    log = Log(limit_bytes)
    for piece in pieces:
        log.add(piece)
    text = log.text()
    assert len(text.encode()) <= limit_bytes + MARK_BYTES
    assert all(character.isprintable() or character in "\n\t" for character in text)


def test_a_long_log_keeps_its_beginning_and_its_end() -> None:
    log = Log(20)
    for piece in (b"beginning ", b"x" * 1000, b" the end"):
        log.add(piece)
    assert log.text() == "beginning \n[998 bytes left out]\nxx the end"


def test_terminal_escapes_and_text_direction_become_visible() -> None:
    assert harmless("\x1b[2Jok\u202e\r\0\n".encode() + b"\xff") == "\\x1b[2Jok\\u202e\\r\\x00\n\ufffd"
