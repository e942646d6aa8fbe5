"""Decides which files are open when the guest starts: /dev/null, the log twice, and its own descriptors.

Distrusts inheritance: a forgotten descriptor of the host is a hole in every other wall.
"""

import fcntl
import os
from collections.abc import Sequence

from forge.sandbox.guest_entry import kernel

FIRST = 3
"""Number of the first descriptor that the guest is given. The three before it are standard input, output and
error."""


def place(given: Sequence[int], status: int) -> None:
    """Move `given` to 3, 4, 5, ..., and close all others but `status`, which the guest's `execve` closes.

    `status` must already have a higher number than the last of them.
    """
    with kernel.step("descriptors"):
        spare = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, status + 1) for number in given]
        for number, source in enumerate(spare, FIRST):
            os.dup2(source, number, inheritable=True)
        silence(standard=(0,))
        os.closerange(FIRST + len(given), status)
        close_from(status + 1)


def silence(standard: Sequence[int] = (0, 1, 2)) -> None:
    """Point standard descriptors to /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in standard:
        os.dup2(null, number, inheritable=True)
    if null > 2:
        os.close(null)


def close_from(lowest: int) -> None:
    """Close every descriptor from `lowest` up; on Linux also those above a lowered RLIMIT_NOFILE."""
    os.closerange(lowest, 1 << 20)  # close_range(2) underneath


def close_all_but(*kept: int) -> None:
    """Close what a remaining process doesn't need, so that the guest's pipes end when the guest does."""
    lowest = FIRST
    for number in sorted(kept):
        os.closerange(lowest, number)
        lowest = number + 1
    close_from(lowest)
