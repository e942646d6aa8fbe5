"""Removes what a process could gain or leak: capabilities, set-uid, tracing by its children, outliving the host.

Distrusts every later `execve`: from here on no program has more rights than the guest now, whatever its file says.
"""

import ctypes
import os
import select
import signal

from forge.sandbox.guest_entry import kernel

# linux/prctl.h, linux/securebits.h, linux/capability.h
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_KEEPCAPS, _CAPBSET_READ, _CAPBSET_DROP = 1, 4, 8, 23, 24
_SET_SECUREBITS, _SET_NO_NEW_PRIVS, _CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL = 28, 38, 47, 4
_ALL_SECUREBITS_LOCKED = 0xEF
"""Secure bits, each set and locked, except SECBIT_KEEP_CAPS, which is locked unset (capabilities(7))."""
_CAPABILITY_VERSION_3 = 0x20080522
"""Version of the structures of capset(2) with 64 bits."""


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    """effective, permitted, inheritable of capabilities 0 to 31, then of 32 to 63."""

    _fields_ = (("words", ctypes.c_uint32 * 6),)


def die_with_parent(signum: int) -> None:
    """Ask for `signum` when the parent dies. A change of credentials clears this, so it is asked for again."""
    with kernel.step("parent death signal"):
        kernel.prctl(_SET_PDEATHSIG, signum)


def require_peer(read_end: int) -> None:
    """Exit at once if a pipe's other end is closed: the parent died before `die_with_parent` could see it."""
    watch = select.poll()
    watch.register(read_end, select.POLLHUP)
    if watch.poll(0):
        os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)


def forbid_gain() -> None:
    """Set no_new_privs: set-uid bits and file capabilities have no effect from here on."""
    with kernel.step("no_new_privs"):
        kernel.prctl(_SET_NO_NEW_PRIVS, 1)


def keep_capabilities_over_setuid() -> None:
    """Let the permitted set survive the next change of uid."""
    kernel.prctl(_SET_KEEPCAPS, 1)


def raise_permitted() -> None:
    """Make every permitted capability effective again."""
    sets = _CapabilitySets()
    kernel.syscall("capget", _CapabilityHeader(_CAPABILITY_VERSION_3, 0), sets)
    sets.words[0], sets.words[3] = sets.words[1], sets.words[4]
    kernel.syscall("capset", _CapabilityHeader(_CAPABILITY_VERSION_3, 0), sets)


def drop_capabilities() -> None:
    """Empty the bounding, ambient, effective, permitted and inheritable sets, and lock the secure bits."""
    with kernel.step("capabilities"):
        if _empty_bounding_set():  # otherwise bubblewrap has emptied it, and has dropped the right to lock the bits
            kernel.prctl(_SET_SECUREBITS, _ALL_SECUREBITS_LOCKED)
        kernel.prctl(_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL)
        sets = _CapabilitySets()
        kernel.syscall("capset", _CapabilityHeader(_CAPABILITY_VERSION_3, 0), sets)
        kernel.syscall("capget", _CapabilityHeader(_CAPABILITY_VERSION_3, 0), sets)
        if any(sets.words):
            raise OSError(1, "capabilities are left after dropping them")


def _empty_bounding_set() -> bool:
    """Empty the set and return whether it held anything."""
    found = False
    for capability in range(64):
        try:
            held = kernel.prctl(_CAPBSET_READ, capability)
        except OSError:
            if capability < 40:  # every kernel with Landlock has at least 41
                raise
            break
        if held:
            kernel.prctl(_CAPBSET_DROP, capability)
            found = True
    return found


def set_dumpable(dumpable: bool) -> None:
    """Set whether other processes of this uid may inspect this one (ptrace, /proc/PID/mem, fd, environ)."""
    with kernel.step("dumpable"):
        kernel.prctl(_SET_DUMPABLE, int(dumpable))


def erase_command_line(proc: int) -> None:
    """Overwrite this process's arguments.

    Every process may read /proc/PID/cmdline, which would name the host's paths.
    """
    with kernel.step("command line"):
        descriptor = os.open("self/stat", os.O_RDONLY, dir_fd=proc)
        text = os.read(descriptor, 4096)
        os.close(descriptor)
        fields = text[text.rindex(b")") + 2 :].split()
        # proc(5): arg_start is field 48, arg_end 49, env_start 50, env_end 51; `fields` begins with field 3
        for start, end in ((int(fields[45]), int(fields[46])), (int(fields[47]), int(fields[48]))):
            if not 0 < start <= end:
                raise OSError(22, "the kernel doesn't say where the arguments are")
            ctypes.memset(start, 0, end - start)
