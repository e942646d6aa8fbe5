"""Runs beside hostile code. What belongs to the process, not to torch, and stays as it is for whoever called.

What importing a module changes as well (filters of warnings, where modules are found, the environment, and with
torch.compile the recursion limit) is compared only where no module was imported meanwhile.
"""

import ctypes
import gc
import locale
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import torch

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
_STATUS = "/proc/thread-self/status"
"""Which signals are blocked, ignored and caught, and the umask, by the kernel: code in C changes them unseen."""
_TOLD = (b"Umask:", b"SigBlk:", b"SigIgn:", b"SigCgt:")
_GPU = "/dev/nvidiactl"
_CAUGHT_BY_LLVM = 0x41804A07
"""Bits of the signals HUP, INT, QUIT, USR1, USR2, TERM, XCPU, XFSZ and SYS. On a GPU, LLVM catches them from
Triton's first compilation on, whatever the kernel (read on an H200 with Triton 3.6)."""


def _told_by_the_kernel() -> tuple[tuple[bytes, int], ...]:
    left_out = {b"SigIgn:", b"SigCgt:"} if os.path.exists(_GPU) else set[bytes]()
    try:
        with open(_STATUS, "rb") as status:
            told = [line.split() for line in status if line.startswith(_TOLD)]
    except OSError:
        before = os.umask(0o77)
        os.umask(before)
        return ((b"Umask:", before),)
    return tuple((name, int(bits, 16) & ~(_CAUGHT_BY_LLVM if name in left_out else 0)) for name, bits in told)


def _environment() -> tuple[bytes, ...]:
    """As C has it, which `os.environ` follows and doesn't lead."""
    try:
        entries = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    except ValueError:
        return tuple(map(os.fsencode, os.environ))
    found: list[bytes] = []
    while entries and (entry := entries[len(found)]) is not None:
        found.append(entry)
    return tuple(found)


def _hooks() -> tuple[object, ...]:
    """Who is told of each line, each exception and each print; compared by identity."""
    traced = (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile())
    return *traced, sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook, sys.stdout, sys.stderr


def _schedule() -> tuple[object, ...]:
    policy = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None
    return os.getpriority(os.PRIO_PROCESS, 0), policy, sys.getswitchinterval()


PROCESS: Mapping[str, Callable[[], object]] = {
    "the umask, or the signals that are blocked, ignored or caught": _told_by_the_kernel,
    "signal handlers": lambda: tuple(signal.getsignal(one) for one in range(1, signal.NSIG)),
    "timers": lambda: signal.getitimer(signal.ITIMER_REAL)[1],
    "resource limits": lambda: tuple(map(resource.getrlimit, _LIMITS)),
    "how the system schedules it": _schedule,
    "the garbage collector": lambda: (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
    "hooks of Python's": _hooks,
    "how torch prints": lambda: tuple(vars(torch._tensor_str.PRINT_OPTS).items()),
    "how numpy prints": lambda: str(np.get_printoptions()),
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "the time zone": lambda: time.tzname,
}
"""What neither a call nor an import may change."""
BESIDE_IMPORTS: Mapping[str, Callable[[], object]] = {
    "filters of warnings": lambda: (
        len(warnings.filters),
        tuple(map(id, warnings.filters)),
        id(warnings.showwarning),
    ),
    "where modules are found": lambda: (*sys.path, *map(id, sys.meta_path), *map(id, sys.path_hooks)),
    "the environment": _environment,
    "the recursion limit": sys.getrecursionlimit,
}
"""What an import may change, and no call that imports nothing."""
