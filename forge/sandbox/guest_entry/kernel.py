"""Makes system calls by name, through libc; a failure names its step.

Distrusts silent return values: every call here either worked or raised `OSError` with the kernel's errno.
"""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

# asm/unistd_64.h and asm-generic/unistd.h; from 424 on, every architecture has the same numbers
_NUMBERS = {
    "x86_64": {"pivot_root": 155, "seccomp": 317, "capset": 126, "capget": 125},
    "aarch64": {"pivot_root": 41, "seccomp": 277, "capset": 91, "capget": 90},
}
_EVERYWHERE = {
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}

_SA_NOCLDSTOP = 1
"""Flag of struct sigaction in asm/signal.h."""

_libc = ctypes.CDLL(None, use_errno=True)


class _SignalAction(ctypes.Structure):
    """struct sigaction of glibc and musl, for 64 bits."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class StepFailed(Exception):
    """One step of building the walls failed; the guest must not start."""

    def __init__(self, step: str, errno: int, detail: str) -> None:
        super().__init__(f"{step}: {detail}")
        self.step = step
        self.errno = errno
        self.detail = detail


@contextmanager
def step(name: str) -> Iterator[None]:
    """Turn any failure of the machine inside into a `StepFailed` called `name`."""
    try:
        yield
    except StepFailed:
        raise
    except (OSError, ValueError, KeyError, AttributeError) as error:
        errno = error.errno if isinstance(error, OSError) and error.errno else 0
        raise StepFailed(name, errno, f"{type(error).__name__}: {error}") from error


def machine() -> str:
    """Return the architecture whose numbers apply; raise OSError for one without a table."""
    name = os.uname().machine
    if name not in _NUMBERS:
        raise OSError(38, f"no system call table for {name!r}: expected one of {', '.join(_NUMBERS)}")
    return name


def _checked(result: int, what: str) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")
    return result


def _argument(value: int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None) -> object:
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, int):
        return ctypes.c_long(value)
    if isinstance(value, bytes):
        return ctypes.c_char_p(value)
    return ctypes.byref(value)


def syscall(name: str, *arguments: int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None) -> int:
    """Call the kernel by name; structures and arrays go by reference."""
    number = _EVERYWHERE.get(name) or _NUMBERS[machine()][name]
    return _checked(_libc.syscall(ctypes.c_long(number), *map(_argument, arguments)), name)


def prctl(option: int, *arguments: int) -> int:
    """Set a property of this process; unused arguments are 0, as newer options demand."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return _checked(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)), f"prctl {option}")


def hear_of_ends_only() -> None:
    """Give SIGCHLD its default action, and let no stopped or continued child send it."""
    action = _SignalAction(flags=_SA_NOCLDSTOP)
    _checked(_libc.sigaction(signal.SIGCHLD, ctypes.byref(action), None), "sigaction")


def unshare(flags: int) -> None:
    """Move the caller, or its future children, into new namespaces."""
    _checked(_libc.unshare(ctypes.c_int(flags)), f"unshare {flags:#x}")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mount something; an error names the target."""
    result = _libc.mount(
        None if source is None else os.fsencode(source),
        os.fsencode(target),
        None if kind is None else os.fsencode(kind),
        ctypes.c_ulong(flags),
        os.fsencode(options),
    )
    _checked(result, f"mount {kind or 'bind'} on {target!r}")


def unmount(target: str, flags: int) -> None:
    """Take the mount at a path away, with flags of umount2(2)."""
    _checked(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), f"unmount {target!r}")
