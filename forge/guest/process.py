"""Runs beside hostile code. Lists the settings of the process, besides torch's, that a call must not change.

Importing a module changes some of them as well: warning filters, module search paths, the environment, and with
torch.compile the recursion limit. These are compared only if no module was imported in between.
"""

# mypy knows no stub of it; its functions name no signal, which would take half of a comparison's time
import _signal  # type: ignore[import-not-found]
import ctypes
import decimal
import gc
import locale
import logging
import os
import re
import resource
import signal
import sys
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import torch

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
"""Resource limits that Python knows by name."""
_STATUS = "/proc/thread-self/status"
"""File in which the kernel reports the umask and the blocked, ignored and caught signals. C code can change them
without Python's knowledge."""
_STATUS_BYTES = 2**16
"""Number of bytes that one reading of that file asks for; the kernel gives the whole file at once."""
_STATUS_FIELDS = re.compile(rb"^(Umask|SigBlk|SigIgn|SigCgt):\t(\w+)$", re.MULTILINE)
"""Fields of that file that are compared, with their values in base 16 or 8."""
_SIGNALS = range(1, signal.NSIG)
"""Numbers of all signals."""
_GPU = "/dev/nvidiactl"
"""File that exists if the process can use an NVIDIA GPU."""
_C = ctypes.CDLL(None)
"""The C library, and all else that is linked to this process."""
_CONTROL = getattr(_C, "prctl", None)
"""C function for the kernel's settings of a process, or None."""
_ASKED_OF_CONTROL, _WRITTEN_BY_CONTROL = (42, 30, 3), (2, 25, 37)
"""Numbers of some of its questions, from linux/prctl.h. PR_GET_THP_DISABLE, PR_GET_TIMERSLACK and PR_GET_DUMPABLE
return their answer; PR_GET_PDEATHSIG, PR_GET_TSC and PR_GET_CHILD_SUBREAPER write it to an integer."""
_OPENMP = tuple(getattr(_C, f"omp_get_{name}", None) for name in ("dynamic", "max_active_levels"))
"""OpenMP's functions that return a setting, None for each that isn't linked to this process."""
_OPENMP_SCHEDULE = getattr(_C, "omp_get_schedule", None)
"""OpenMP's function that writes how loops are divided, by kind and size, or None."""
_LOCALE_OF_THREAD = getattr(_C, "uselocale", None)
"""C function that returns a thread's own locale, or None."""
if _LOCALE_OF_THREAD is not None:
    _LOCALE_OF_THREAD.restype = ctypes.c_void_p
_CAUGHT_BY_LLVM = 0x41804A07
"""Bits of the signals HUP, INT, QUIT, USR1, USR2, TERM, XCPU, XFSZ and SYS. On a GPU, LLVM catches them from Triton's
first compilation on, whatever the kernel (read on an H200 with Triton 3.6)."""


def _umask_and_signals() -> tuple[tuple[bytes, int], ...]:
    left_out = {b"SigIgn", b"SigCgt"} if os.path.exists(_GPU) else set[bytes]()
    try:
        status = os.open(_STATUS, os.O_RDONLY)
        try:
            fields = _STATUS_FIELDS.findall(os.read(status, _STATUS_BYTES))
        finally:
            os.close(status)
    except OSError:
        before = os.umask(0o77)
        os.umask(before)
        return ((b"Umask", before),)
    return tuple((name, int(bits, 16) & ~(_CAUGHT_BY_LLVM if name in left_out else 0)) for name, bits in fields)


def _environment() -> tuple[bytes, ...]:
    """Return the environment as C has it; C code changes it without changing `os.environ`."""
    try:
        entries = ctypes.POINTER(ctypes.c_char_p).in_dll(_C, "environ")
    except ValueError:
        return tuple(map(os.fsencode, os.environ))
    found: list[bytes] = []
    while entries and (entry := entries[len(found)]) is not None:
        found.append(entry)
    return tuple(found)


def _hooks() -> tuple[object, ...]:
    """Return the functions that are called for each line, exception and print; they are compared by identity."""
    traced: tuple[object, ...] = (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile())
    traced += (*sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth())
    return *traced, sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook, sys.stdout, sys.stderr


def _schedule() -> tuple[object, ...]:
    policy = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None
    return os.getpriority(os.PRIO_PROCESS, 0), policy, sys.getswitchinterval()


def _standard_files() -> tuple[object, ...]:
    """Return which files the first three descriptors are; None for a closed one."""
    return tuple(map(_file_of, range(3)))


def _file_of(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _kept_by_the_kernel() -> tuple[int, ...]:
    """Return what Linux keeps for a process besides, such as the nanoseconds by which timers may be late."""
    if _CONTROL is None:
        return ()
    written = (ctypes.c_int * len(_WRITTEN_BY_CONTROL))()
    for place, number in enumerate(_WRITTEN_BY_CONTROL):
        _CONTROL(number, ctypes.byref(written, place * ctypes.sizeof(ctypes.c_int)), 0, 0, 0)
    return *(_CONTROL(number, 0, 0, 0, 0) for number in _ASKED_OF_CONTROL), *written


def _openmp() -> tuple[int, ...]:
    """Return how OpenMP divides work among threads: torch's own work, too."""
    kind, size = ctypes.c_int(), ctypes.c_int()
    if _OPENMP_SCHEDULE is not None:
        _OPENMP_SCHEDULE(ctypes.byref(kind), ctypes.byref(size))
    return *(read() for read in _OPENMP if read is not None), kind.value, size.value


def _locale() -> tuple[object, ...]:
    """Return the locale of the process, and that of this thread if it has its own."""
    return locale.setlocale(locale.LC_ALL), _LOCALE_OF_THREAD(None) if _LOCALE_OF_THREAD is not None else None


PROCESS: Mapping[str, Callable[[], object]] = {
    "the umask, or the signals that are blocked, ignored or caught": _umask_and_signals,
    "signal handlers": lambda: tuple(map(_signal.getsignal, _SIGNALS)),
    "timers": lambda: signal.getitimer(signal.ITIMER_REAL)[1],
    "resource limits": lambda: tuple(map(resource.getrlimit, _LIMITS)),
    "how the system schedules it": _schedule,
    "the garbage collector": lambda: (
        *(gc.isenabled(), gc.get_threshold(), gc.get_debug()),  # surroundings.py counts frozen objects once
        *map(id, gc.callbacks),
    ),
    "whether Python traces memory": tracemalloc.is_tracing,
    "how long whole numbers may be as text": sys.get_int_max_str_digits,
    "standard input, output and errors": _standard_files,
    "huge pages, timers' precision, or what else Linux keeps for it": _kept_by_the_kernel,
    "how OpenMP divides work": _openmp,
    "hooks of Python's": _hooks,
    "how torch prints": lambda: tuple(vars(torch._tensor_str.PRINT_OPTS).items()),
    "how numpy prints": lambda: str(np.get_printoptions()),
    "the precision of Python's decimals": lambda: (decimal.getcontext().prec, decimal.getcontext().rounding),
    "whether Python's logs are shown": lambda: (
        logging.root.manager.disable,
        logging.root.isEnabledFor(logging.WARNING),
    ),
    "the stack of new threads": threading.stack_size,
    "the locale": _locale,
    "the time zone": lambda: time.tzname,
}
"""Settings that neither a call nor an import may change, by name."""
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
"""Settings that an import may change, but no call that imports nothing, by name."""
