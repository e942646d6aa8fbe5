"""Bounds how many gates are asked beside others at once, over all processes of Forge on a machine.

Each such gate keeps a processor busy. With many more of them than processors, guests wait so long that no verdict
comes.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.lab.job import processors
from forge.sandbox.calling_off import require_wanted
from forge.sandbox.lock_file import open_lock

POLL_S = 0.05
"""Seconds between two looks for a free slot. Chosen; a gate takes seconds."""


@contextmanager
def slot(is_wanted: Callable[[], bool]) -> Iterator[bool]:
    """Hold one of the machine's slots, of which there are as many as processors; yield False if it isn't wanted more.

    Raise CalledOff if the work is called off meanwhile.
    """
    held = _taken()
    while held is None and is_wanted():
        require_wanted()
        time.sleep(POLL_S)
        held = _taken()
    try:
        yield held is not None
    finally:
        if held is not None:
            os.close(held)


def _taken() -> int | None:
    """Return the lock of a free slot; None if there is none."""
    for number in range(processors()):
        held = open_lock(_path(number))
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
        else:
            return held
    return None


def _path(number: int) -> Path:
    return Path(tempfile.gettempdir()) / f"forge-slot-{number}.lock"
