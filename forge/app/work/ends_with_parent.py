"""Ends a process with the one that started it, also if that one is killed."""

import ctypes
import os
import signal
import sys

DIE_WITH_PARENT = 1
"""Number of the option PR_SET_PDEATHSIG of prctl(2)."""


def end_with(parent: int) -> None:
    """Have the system end this process when its parent ends (on Linux); end at once if it has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGTERM)
    if os.getppid() != parent:
        signal.raise_signal(signal.SIGTERM)
