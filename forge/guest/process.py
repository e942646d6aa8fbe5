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

from . import linux

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
"""Resource limits that Python knows by name."""
_SIGNALS = range(1, signal.NSIG)
"""Numbers of all signals."""
_TOOLS = 6
"""Number of tools that `sys.monitoring` has room for."""
_NUMBERS = torch._C.parse_schema("f(int a=1234567, float b=0.5) -> ()")
"""Value whose text torch writes by C++, in the locale that C++ keeps beside that of C."""
_C = ctypes.CDLL(None)
"""The C library, and all else that is linked to this process."""
_LOCALE_OF_THREAD = getattr(_C, "uselocale", None)
"""C function that returns a thread's own locale, or None."""
if _LOCALE_OF_THREAD is not None:
    _LOCALE_OF_THREAD.restype = ctypes.c_void_p


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


def _tools() -> tuple[object, ...]:
    """Return the tools that watch Python's calls and lines, with the events that each asked for (Python 3.12)."""
    if sys.version_info < (3, 12):
        return ()
    named = {number: sys.monitoring.get_tool(number) for number in range(_TOOLS)}
    watched = ((name, sys.monitoring.get_events(number)) for number, name in named.items() if name is not None)
    return *watched, sys.is_stack_trampoline_active()


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


def _socket_timeout_s() -> float | None:
    """Return for how many seconds new sockets wait; None for any time, or if nothing has imported them."""
    sockets = sys.modules.get("socket")
    timeout_s: float | None = None if sockets is None else sockets.getdefaulttimeout()
    return timeout_s


def _locale() -> tuple[object, ...]:
    """Return the locale of the process, and that of this thread if it has its own."""
    return locale.setlocale(locale.LC_ALL), _LOCALE_OF_THREAD(None) if _LOCALE_OF_THREAD is not None else None


PROCESS: Mapping[str, Callable[[], object]] = {
    "the umask, the signals that are blocked, ignored or caught, or the filters of system calls": (
        linux.umask_signals_and_filters
    ),
    "signal handlers": lambda: (*map(_signal.getsignal, _SIGNALS), linux.actions_of_signals()),
    "timers": linux.timers,
    "resource limits": lambda: tuple(map(resource.getrlimit, _LIMITS)),
    "how the system schedules it": _schedule,
    "the garbage collector": lambda: (
        *(gc.isenabled(), gc.get_threshold(), gc.get_debug()),  # surroundings.py counts frozen objects once
        *map(id, gc.callbacks),
    ),
    "whether Python traces memory": tracemalloc.is_tracing,
    "how long whole numbers may be as text": sys.get_int_max_str_digits,
    "standard input, output and errors": lambda: (_standard_files(), linux.flags_of_descriptors()),
    "huge pages, timers' precision, or what else Linux keeps for it": linux.kept_by_the_kernel,
    "how the floating-point unit is set": linux.floating_point_unit,
    "how OpenMP and MKL divide work": lambda: (linux.openmp(), linux.threads_of_mkl()),
    "hooks of Python's": _hooks,
    "tools that watch Python's calls": _tools,
    "how torch prints": lambda: tuple(vars(torch._tensor_str.PRINT_OPTS).items()),
    "how numpy prints": lambda: str(np.get_printoptions()),
    "the precision of Python's decimals": lambda: (decimal.getcontext().prec, decimal.getcontext().rounding),
    "whether Python's logs are shown": lambda: (
        logging.root.manager.disable,
        logging.root.isEnabledFor(logging.WARNING),
    ),
    "the stack of new threads": lambda: (threading.stack_size(), linux.stack_of_new_threads_bytes()),
    "the locale": _locale,
    "how C++ writes numbers": lambda: str(_NUMBERS),
    "the time zone": lambda: time.tzname,
    "how long sockets wait": _socket_timeout_s,
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
    "how Python loads libraries": sys.getdlopenflags,
}
"""Settings that an import may change, but no call that imports nothing, by name."""
