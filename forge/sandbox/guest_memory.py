"""Reads the memory of a stopped guest, so that a timed call needs no copy of its outputs.

Distrusts the guest, which says where its outputs lie. An address is only ever read. What lies there while the guest
is stopped is its answer, and memory that isn't there is refused.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from forge.errors import EnvironmentUnfit
from forge.sandbox import own_memory
from forge.sandbox.own_memory import Span

_READ_BYTES = 2**20
"""Number of bytes that one reading of the mappings asks for; the kernel gives as many as it likes."""


class GuestMemory:
    """The memory of a guest's first process: opened before it runs a candidate's code, and read after."""

    def __init__(self, pids: Collection[int]) -> None:
        """Open the memory of the only process in `pids`; a failure to do so is raised where it must be readable."""
        self._memory = self._mappings = -1
        self._denied = "" if len(pids) == 1 else f"the guest began with {len(pids)} processes, expected one"
        try:
            self._memory = os.open(f"/proc/{next(iter(pids), 0)}/mem", os.O_RDONLY)
            self._mappings = os.open(f"/proc/{next(iter(pids), 0)}/maps", os.O_RDONLY)
        except OSError as denied:
            self._denied = self._denied or f"{denied.filename}: {denied.strerror}"

    def require_readable(self) -> None:
        """Raise EnvironmentUnfit if the memory couldn't be opened."""
        if self._denied:
            raise unreadable(self._denied)

    def read_into(self, target: memoryview, address: int) -> bool:
        """Fill `target` with the bytes from `address` on; return False if not all of them are there."""
        done = 0
        while done < len(target):
            try:
                read = os.preadv(self._memory, [target[done:]], address + done)
            except (OSError, OverflowError):
                return False
            if read == 0:  # the process has ended, or runs another program
                return False
            done += read
        return True

    def are_own(self, spans: Iterable[Span]) -> bool:
        """Return whether each span lies in private memory of no file; False if the process is gone."""
        try:
            os.lseek(self._mappings, 0, os.SEEK_SET)
            pieces = b"".join(iter(lambda: os.read(self._mappings, _READ_BYTES), b""))
        except OSError:
            return False
        return own_memory.are_own(pieces.decode(errors="replace"), spans)

    def close(self) -> None:
        """Release the memory."""
        for descriptor in (self._memory, self._mappings):
            if descriptor >= 0:
                os.close(descriptor)


def unreadable(why: str) -> EnvironmentUnfit:
    """Return the error for a host that may not read its guests' memory, with the next step."""
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    except OSError:
        scope = ""
    return EnvironmentUnfit(
        f"the host may not read the memory of its guests ({why}), so no call can be timed on a processor",
        hint=next_step(scope),
    )


def next_step(yama_scope: str) -> str:
    """Return what lets the host read its guests' memory, from Yama's ptrace_scope; empty if there is no Yama.

    Yama allows a parent to read its children below 3; a machine leaves 3 only by a restart
    (docs.kernel.org/admin-guide/LSM/Yama.html).
    """
    if yama_scope == "3":
        return "set kernel.yama.ptrace_scope = 1 in /etc/sysctl.d and restart the machine: 3 stays until then"
    return "let this user trace its own child processes: no rule of AppArmor, SELinux or seccomp against ptrace"
