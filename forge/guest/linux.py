"""Runs beside hostile code. Reads what Linux, the processor and C keep for this thread and process.

A call must leave it as it was. Where a system has no such setting, an answer says so, and stays the same.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable

import torch

from .spans import ends

_C = ctypes.CDLL(None)
"""The C library, and all else that is linked to this process."""
_STATUS = "/proc/thread-self/status"
"""File in which the kernel reports the umask, the blocked, ignored and caught signals, and the number of filters of
system calls. C code can change them without Python's knowledge."""
_STATUS_BYTES = 2**16
"""Number of bytes that one reading of that file asks for; the kernel gives the whole file at once."""
_STATUS_FIELDS = re.compile(rb"^(Umask|SigBlk|SigIgn|SigCgt|Seccomp_filters):\t(\w+)$", re.MULTILINE)
"""Fields of that file that are compared, with their values in base 16, 10 or 8."""
_GPU = "/dev/nvidiactl"
"""File that exists if the process can use an NVIDIA GPU."""
_CAUGHT_BY_LLVM = 0x41804A07
"""Bits of the signals HUP, INT, QUIT, USR1, USR2, TERM, XCPU, XFSZ and SYS. On a GPU, LLVM catches them from Triton's
first compilation on, whatever the kernel (read on an H200 with Triton 3.6)."""
_OF_THREADS = (32, 33)
"""Signals that the C library keeps for its threads, and whose action it refuses to tell (nptl)."""
_ACTION = getattr(_C, "sigaction", None)
"""C function that writes what a signal does, or None."""
_ACTION_BYTES = 256
"""Room for what that function writes, in bytes; it is 152 on x86 and ARM."""
_ACTION_FIELDS = (slice(0, 16), slice(136, 140))
"""Bytes of it that mean something: the function with the 64 signals that are blocked meanwhile, and the flags. The C
library has room for 1024 signals between them, and leaves what its stack held (struct sigaction, glibc, 64 bits)."""
_DESCRIPTORS = range(3)
"""Standard input, output and errors."""
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
"""Timers whose signals end a process that doesn't catch them."""
_CONTROL = getattr(_C, "prctl", None)
"""C function for the kernel's settings of a process, or None."""
_ASKED_OF_CONTROL = ((42, 0), (30, 0), (3, 0), (34, 0), (66, 0), (68, 0), (52, 0), (52, 1), (52, 2))
"""Questions that return their answer, with an argument, from linux/prctl.h: PR_GET_THP_DISABLE, PR_GET_TIMERSLACK,
PR_GET_DUMPABLE, PR_MCE_KILL_GET, PR_GET_MDWE, PR_GET_MEMORY_MERGE, and PR_GET_SPECULATION_CTRL of three kinds."""
_WRITTEN_BY_CONTROL = (2, 25, 37)
"""Questions whose answer is written to an integer: PR_GET_PDEATHSIG, PR_GET_TSC and PR_GET_CHILD_SUBREAPER."""
_MACHINE = os.uname().machine
_IO_PRIORITY, _MEMORY_POLICY = {"x86_64": (252, 239), "aarch64": (31, 236)}.get(_MACHINE, (None, None))
"""Numbers of the system calls ioprio_get and get_mempolicy (asm/unistd_64.h, asm-generic/unistd.h)."""
_THIS_THREAD = 1
"""Number by which ioprio_get is asked about one thread (IOPRIO_WHO_PROCESS)."""
_ARCHITECTURE = getattr(_C, "arch_prctl", None)
"""C function for the kernel's settings on x86, or None."""
_MAY_ASK_THE_PROCESSOR = 0x1011
"""Question whether the instruction cpuid may be used (ARCH_GET_CPUID in asm/prctl.h)."""
_UNIT = getattr(_C, "fegetenv", None)
"""C function that writes how the floating-point unit is set, or None."""
_UNIT_BYTES = 512
"""Room for what that function writes, in bytes; it is 32 on x86 and 8 on ARM."""
_UNIT_FIELDS = {"x86_64": (slice(2), slice(8, 10), slice(28, 32)), "aarch64": (slice(4),)}.get(_MACHINE, ())
"""Bytes of it that arithmetic changes by `_RAISED` alone (fenv.h). On x86: the control word and the tags of the older
unit, and the newer unit's control register. On ARM: the control register."""
_RAISED = 0x3F
"""Bits of the last field on x86 for the exceptions that were raised so far."""
_READ_ATTRIBUTES = getattr(_C, "pthread_getattr_default_np", None)
"""C function that writes the attributes of new threads, or None."""
_ATTRIBUTES_BYTES = 512
"""Room for these attributes in bytes; glibc's take 56 or 64."""
_OPENMP = tuple(getattr(_C, f"omp_get_{name}", None) for name in ("dynamic", "max_active_levels"))
"""OpenMP's functions that return a setting, None for each that isn't linked to this process."""
_OPENMP_SCHEDULE = getattr(_C, "omp_get_schedule", None)
"""OpenMP's function that writes how loops are divided, by kind and size, or None."""


def _mkl() -> Callable[[], int] | None:
    """Return MKL's function for its number of threads, which torch's library has taken in; None without it."""
    try:
        return getattr(ctypes.CDLL("libtorch_cpu.so", mode=os.RTLD_NOW | os.RTLD_NOLOAD), "mkl_get_max_threads", None)
    except (AttributeError, OSError):
        return None


_MKL_THREADS = _mkl()
_THREADS = "/proc/self/task"
"""Folder with a name for each thread of the process."""
Scheduling = tuple[frozenset[int], int, int]
"""Processors, policy and priority of a thread."""
Mapping = tuple[int, int, str]
"""Address of a mapping's first byte and that behind its last one, and the rights to it."""


_ACTION_ROOM, _UNIT_ROOM, _ATTRIBUTES_ROOM, _WRITTEN_ROOM = (
    ctypes.c_ubyte * _ACTION_BYTES,
    ctypes.c_ubyte * _UNIT_BYTES,
    ctypes.c_ubyte * _ATTRIBUTES_BYTES,
    ctypes.c_int * (len(_WRITTEN_BY_CONTROL) + 1),
)
"""Types of the room for answers. If nothing keeps them, ctypes makes them anew each time, which takes long."""


def umask_signals_and_filters() -> tuple[tuple[bytes, int], ...]:
    """Return the umask, the blocked, ignored and caught signals, and how many filters of system calls there are."""
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


def _caught() -> tuple[int, ...]:
    """Return the signals that are caught now; later changes of which are caught are seen by the settings above."""
    bits = dict(umask_signals_and_filters()).get(b"SigCgt", 0)
    return tuple(one for one in range(1, signal.NSIG) if bits >> (one - 1) & 1 and one not in _OF_THREADS)


def actions_of_signals() -> bytes:
    """Return what C does about each signal that was caught when the guest began: function, flags and mask.

    C code can exchange the function that Python has put there, for that of an interrupt for example.
    """
    written, found = _ACTION_ROOM(), b""
    if _ACTION is None or sys.platform != "linux":
        return found
    for number in _CAUGHT:
        _ACTION(number, None, ctypes.byref(written))
        content = bytes(written)
        found += b"".join(content[field] for field in _ACTION_FIELDS)
    return found


def flags_of_descriptors() -> tuple[tuple[int, int] | None, ...]:
    """Return the flags of the first three descriptors, such as whether a write may fail; None for a closed one."""
    return tuple(map(_flags, _DESCRIPTORS))


def _flags(descriptor: int) -> tuple[int, int] | None:
    try:
        return fcntl.fcntl(descriptor, fcntl.F_GETFL), fcntl.fcntl(descriptor, fcntl.F_GETFD)
    except OSError:
        return None


def timers() -> tuple[tuple[bool, float], ...]:
    """Return for each timer whether it is running, and its interval. How long it still runs changes by itself."""
    return tuple((left_s > 0, interval_s) for left_s, interval_s in map(signal.getitimer, _TIMERS))


def kept_by_the_kernel() -> tuple[int, ...]:
    """Return what Linux keeps for a process besides, such as the nanoseconds by which timers may be late."""
    if _CONTROL is None:
        return ()
    written = _WRITTEN_ROOM()
    for place, number in enumerate(_WRITTEN_BY_CONTROL):
        _CONTROL(number, ctypes.byref(written, place * ctypes.sizeof(ctypes.c_int)), 0, 0, 0)
    priority = 0
    if _IO_PRIORITY is not None:
        _C.syscall(_MEMORY_POLICY, ctypes.byref(written, len(_WRITTEN_BY_CONTROL) * 4), None, 0, None, 0)
        priority = _C.syscall(_IO_PRIORITY, _THIS_THREAD, 0)
    cpuid = _ARCHITECTURE(_MAY_ASK_THE_PROCESSOR, 0) if _ARCHITECTURE is not None else 0
    return *(_CONTROL(number, kind, 0, 0, 0) for number, kind in _ASKED_OF_CONTROL), priority, cpuid, *written


def floating_point_unit() -> tuple[int, ...]:
    """Return how this thread's unit rounds, what it stops at, and which registers of x86's older one are in use."""
    if _UNIT is None:
        return ()
    written = _UNIT_ROOM()
    _UNIT(ctypes.byref(written))
    content = bytes(written)
    fields = [int.from_bytes(content[field], "little") for field in _UNIT_FIELDS]
    return (*fields[:-1], fields[-1] & ~_RAISED) if _MACHINE == "x86_64" else tuple(fields)


def stack_of_new_threads_bytes() -> int:
    """Return the size of the stack that C gives to new threads; 0 if it doesn't say."""
    if _READ_ATTRIBUTES is None:
        return 0
    attributes, size_bytes = _ATTRIBUTES_ROOM(), ctypes.c_size_t()
    _READ_ATTRIBUTES(ctypes.byref(attributes))
    _C.pthread_attr_getstacksize(ctypes.byref(attributes), ctypes.byref(size_bytes))
    _C.pthread_attr_destroy(ctypes.byref(attributes))
    return size_bytes.value


def openmp() -> tuple[int, ...]:
    """Return how OpenMP divides work among threads: torch's own work, too."""
    kind, size = ctypes.c_int(), ctypes.c_int()
    if _OPENMP_SCHEDULE is not None:
        _OPENMP_SCHEDULE(ctypes.byref(kind), ctypes.byref(size))
    return *(read() for read in _OPENMP if read is not None), kind.value, size.value


def threads_of_mkl() -> int:
    """Return the number of threads of MKL's products in this thread; torch may be built with it, or not."""
    return int(_MKL_THREADS()) if _MKL_THREADS is not None else 0


def scheduling_of_threads() -> dict[int, Scheduling]:
    """Return for each thread the processors that it may use, its policy and its priority, where that can be told.

    They are each thread's own: a call may change those of OpenMP's workers, in which torch works as well.
    """
    found: dict[int, Scheduling] = {}
    for thread in map(int, os.listdir(_THREADS)) if os.path.isdir(_THREADS) else ():
        with contextlib.suppress(OSError):  # it has ended
            policy, priority = os.sched_getscheduler(thread), os.getpriority(os.PRIO_PROCESS, thread)
            found[thread] = (frozenset(os.sched_getaffinity(thread)), policy, priority)
    return found


def is_scheduled_anew(before: dict[int, Scheduling]) -> bool:
    """Return whether a thread that is still there is scheduled in another way than before."""
    now = scheduling_of_threads()
    return any(before[thread] != now[thread] for thread in before.keys() & now.keys())


def mappings_of(tensors: Iterable[torch.Tensor]) -> tuple[Mapping, ...]:
    """Return the mappings in which the tensors on the processor lie; none if the system doesn't show them.

    A change of rights to some pages divides a mapping, and so does leaving them out of a process that is forked.
    """
    spans = [ends(tensor) for tensor in tensors if tensor.device.type == "cpu" and tensor.numel()]
    try:
        with open("/proc/self/maps", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return ()
    found: list[Mapping] = []
    lowest, highest = min((one[0] for one in spans), default=0), max((one[1] for one in spans), default=-1)
    for line in lines:
        addresses, _, behind = line.partition(b" ")
        first, _, end = addresses.partition(b"-")
        start, stop = int(first or b"0", 16), int(end or b"0", 16)
        if stop > lowest and start <= highest and any(start <= last and low < stop for low, last in spans):
            found.append((start, stop, behind[:4].decode()))
    return tuple(found)


_CAUGHT = _caught()
