"""Cursors: where the next page of a list begins, as a text that only the ledger that gave it accepts."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from forge.app.desk.view import View
from forge.errors import UsageError

Data = dict[str, object]
One = TypeVar("One")
MOST_ITEMS = 200
"""Largest number of items on a page. Chosen: four usual pages. A larger page holds the ledger's reader longer."""
USUAL_ITEMS = 50
"""Number of items on a page if the caller names none. Chosen; a larger page takes longer to make and to read."""
LONGEST_CURSOR = 200
"""Largest length of a cursor that is read, in characters. Chosen; a cursor is a name and an event's number. The limit
bounds what an error quotes."""


def page(found: Sequence[One], *, limit: int, view: View, seq_of: Callable[[One], int]) -> Data:
    """Return the first `limit` of the items that were found, and the cursor of the next page if there is one."""
    shown = list(found[:limit])
    following = cursor(view, seq_of(shown[-1])) if len(found) > limit else None
    return {"items": shown, "next": following, "seq": view.head.seq}


def cursor(view: View, seq: int) -> str:
    """Return the cursor of the page after the item at `seq`."""
    text = f"{view.workspace.ledger.ledger_id}:{seq}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_cursor(view: View, untrusted_cursor: str | None) -> int | None:
    """Return the sequence number in a cursor of this ledger; None without one. Raises UsageError."""
    if untrusted_cursor is None:
        return None
    ledger_id, seq = _parts(untrusted_cursor)
    if ledger_id != view.workspace.ledger.ledger_id:
        raise UsageError(
            f"cursor {untrusted_cursor[:LONGEST_CURSOR]!r} is none of this ledger: expected `next` of an earlier page"
        )
    if not 0 <= seq <= view.head.seq:
        raise UsageError(f"cursor at event {seq}: expected 0 to {view.head.seq}, the ledger's head")
    return seq


def _parts(untrusted_cursor: str) -> tuple[str, int]:
    bad = UsageError(f"bad cursor {untrusted_cursor[:LONGEST_CURSOR]!r}: expected `next` of an earlier page")
    if len(untrusted_cursor) > LONGEST_CURSOR:
        raise bad
    try:
        padded = untrusted_cursor + "=" * (-len(untrusted_cursor) % 4)
        ledger_id, _, seq = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").partition(":")
    except (binascii.Error, ValueError) as error:
        raise bad from error
    if not (seq.isdecimal() and len(seq) <= 12):
        raise bad
    return ledger_id, int(seq)
