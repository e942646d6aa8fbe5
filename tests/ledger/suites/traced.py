"""Kills a forked child at the n-th system call that touches a file: before the kernel carries it out, or after.

The child stops itself at every system call by ptrace(2), so that the kill falls on a boundary and not near one.
Linux only, and only for the machines whose call numbers stand here.
"""

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Callable

_CALLS = {
    # write pwrite64 flock fcntl fsync fdatasync ftruncate rename unlink pwritev openat unlinkat renameat2
    "x86_64": (1, 18, 73, 72, 74, 75, 77, 82, 87, 296, 257, 263, 316),
    # the same, but for rename and unlink, which it hasn't got; renameat comes instead
    "aarch64": (64, 68, 32, 25, 82, 83, 46, 38, 70, 56, 35, 276),
}
FILE_CALLS = frozenset(_CALLS.get(platform.machine(), ()))
TRACEME, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
TRACESYSGOOD, EXITKILL = 1, 1 << 20
SYSCALL_STOP = signal.SIGTRAP | 0x80
ENTRY = 1
"""`op` of struct ptrace_syscall_info (linux/ptrace.h): the call's number stands 24 bytes in."""
INFO_BYTES = 88


def possible() -> bool:
    """Whether this machine lets a parent trace its child."""
    if not (sys.platform.startswith("linux") and FILE_CALLS):
        return False
    child = os.fork()
    if child == 0:
        os._exit(0 if _ptrace(TRACEME, 0, 0, None) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def killed_at(fatal: int, work: Callable[[], None]) -> int:
    """Run `work` in a child that dies at boundary `fatal`; how many it passed, -1 if it was killed there."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert _ptrace(TRACEME, 0, 0, None) == 0
            os.kill(os.getpid(), signal.SIGSTOP)
            work()
            status = 0
        finally:
            os._exit(status)
    os.waitpid(child, 0)
    assert _ptrace(SETOPTIONS, child, 0, TRACESYSGOOD | EXITKILL) == 0
    return _step(child, fatal)


def _step(child: int, fatal: int) -> int:
    passed, inside, deliver = 0, False, 0
    while True:
        assert _ptrace(SYSCALL, child, 0, deliver) == 0
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            assert status == 0, f"the child failed by itself: {status}"
            return passed
        stopped_by = os.WSTOPSIG(status)
        deliver = 0 if stopped_by == SYSCALL_STOP else stopped_by
        if stopped_by != SYSCALL_STOP:
            continue
        entry, number = _call(child)
        if entry:
            inside = number in FILE_CALLS
        if inside:
            passed += 1
            if passed == fatal:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return -1


def _call(child: int) -> tuple[bool, int]:
    """Whether the child stands before a system call or after it, and before it, which."""
    info = ctypes.create_string_buffer(INFO_BYTES)
    assert _ptrace(GET_SYSCALL_INFO, child, INFO_BYTES, ctypes.addressof(info)) > 0
    return info.raw[0] == ENTRY, int.from_bytes(info.raw[24:32], sys.byteorder)


def _ptrace(request: int, child: int, address: int, data: int | None) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    library.ptrace.restype = ctypes.c_long
    return int(library.ptrace(request, child, address, data))
