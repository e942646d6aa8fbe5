"""Other spellings of a value: in the stored bytes of a row, and in an event that is appended with right hashes."""

import unicodedata
from collections.abc import Callable

from tests.ledger.edits.copy import Copy, Edit, Found

NEGATIVE_ZERO = "the writer spells a negative zero so: it is another number, which an event may hold"
OTHER_TEXT = "it is another text, which an event may hold: the writer records text as it is given"
Spelling = tuple[str, str, Callable[[str], str], Found, str]
"""In words, the type of event, what becomes of its payload, what finds it when it is appended, and why."""


def _put(old: str, new: str) -> Callable[[str], str]:
    return lambda payload: payload.replace(old, new, 1)


SPELLINGS: tuple[Spelling, ...] = (
    ("1.10 for 1.1", "ProfileCaptured", _put("1.1,", "1.10,"), "verify", ""),
    ("1e-06 for 1e-6", "ProfileCaptured", _put("1e-6", "1e-06"), "verify", ""),
    ("0 for 0.0", "ProfileCaptured", _put('"stalls":0.0', '"stalls":0'), "verify", ""),
    ("-0.0 for 0.0", "ProfileCaptured", _put('"stalls":0.0', '"stalls":-0.0'), "nothing", NEGATIVE_ZERO),
    ("1.0 for a whole number", "BenchmarkRecorded", _put('"attempt":1,', '"attempt":1.0,'), "verify", ""),
    ("a number as text", "BenchmarkRecorded", _put('"attempt":1,', '"attempt":"1",'), "verify", ""),
    ("NaN", "ProfileCaptured", _put('"stalls":0.0', '"stalls":NaN'), "verify", ""),
    (
        "a letter and its accent as two signs",
        "ProfileCaptured",
        lambda payload: unicodedata.normalize("NFD", payload),
        "nothing",
        OTHER_TEXT,
    ),
    ("a letter escaped", "ProfileCaptured", _put("Pr", "\\u0050r"), "verify", ""),
    (
        "keys in another order",
        "ProfileCaptured",
        _put('"ipc":1.1,"misses":1e-6', '"misses":1e-6,"ipc":1.1'),
        "verify",
        "",
    ),
    ("a key twice", "ProfileCaptured", _put('"ipc":1.1', '"ipc":1.1,"ipc":1.1'), "verify", ""),
    ("an unknown key", "ProfileCaptured", _put('"tool"', '"note":1,"tool"'), "verify", ""),
    ("a space after a colon", "ProfileCaptured", _put('"kind":', '"kind": '), "verify", ""),
)


def _stored(kind: str, spell: Callable[[str], str]) -> Callable[[Copy], None]:
    def act(copy: Copy) -> None:
        row = copy.last(kind)
        assert spell(row.payload) != row.payload
        with copy.unguarded() as connection:
            connection.execute("UPDATE event SET payload = ? WHERE seq = ?", (spell(row.payload), row.seq))

    return act


def _appended(kind: str, spell: Callable[[str], str]) -> Callable[[Copy], None]:
    def act(copy: Copy) -> None:
        row = copy.last(kind)
        copy.append(row._replace(payload=spell(row.payload)))

    return act


STORED_FORMS = tuple(Edit(name, _stored(kind, spell)) for name, kind, spell, _, _ in SPELLINGS)
APPENDED_FORMS = tuple(Edit(name, _appended(kind, spell), found, why) for name, kind, spell, found, why in SPELLINGS)
