"""Calls off the work of this process from another thread: every guest is ended, and no more are started.

The work of another machine for this process ends in the same way, with its connection.

What a guest said that was ended so means nothing. So the work in hand ends with `CalledOff`. That is no
Exception: no code on the way may take it for a fault of the candidate or of the machine.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class CalledOff(BaseException):
    """The host doesn't want the result of its work any more."""


class Endable(Protocol):
    """A guest, or a connection to another machine that is at work, that can be ended from any thread."""

    def end(self) -> None:
        """Kill the whole tree; don't wait."""


_lock = threading.Lock()
_live: set[Endable] = set()
_called_off = False


def call_off() -> None:
    """End every guest of this process, and let none be started until the work in hand has ended."""
    global _called_off  # noqa: PLW0603  # one switch for all guests of the process
    with _lock:
        _called_off = True
        ending = list(_live)
    for guest in ending:
        guest.end()


def resume() -> None:
    """Let guests be started again, after `call_off` ended."""
    global _called_off  # noqa: PLW0603  # see `call_off`
    with _lock:
        _called_off = False


def require_wanted() -> None:
    """Raise CalledOff if the work was called off."""
    if _called_off:
        raise CalledOff


@contextmanager
def wanted() -> Iterator[None]:
    """Raise CalledOff in place of any result or fault of the block, if the work was called off meanwhile."""
    try:
        yield
    finally:
        require_wanted()


def began(guest: Endable) -> None:
    """Note a guest that was started; it is ended at once if the work was called off."""
    with _lock:
        _live.add(guest)
    if _called_off:
        guest.end()


def ended(guest: Endable) -> None:
    """Forget a guest whose processes are gone."""
    with _lock:
        _live.discard(guest)
