"""Reads the memory of a stopped guest, so that a timed call needs no copy of its outputs.

Distrusts the guest, which says where its outputs lie. An address is only ever read. What lies there while the guest
is stopped is its answer, and memory that isn't there is refused.
"""

import os

from forge.errors import EnvironmentUnfit


class GuestMemory:
    """The address space of a guest's first process, before and after it has run a candidate's code."""

    def __init__(self, pid: int) -> None:
        """Open the memory of the process with this id; raise EnvironmentUnfit if this user may not read it."""
        try:
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except OSError as denied:
            raise EnvironmentUnfit(
                f"the memory of a guest can't be read: {denied.strerror}, expected /proc/<pid>/mem of its own guests",
                hint="let this user trace its own child processes (ptrace), as containers do by default",
            ) from denied

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

    def close(self) -> None:
        """Release the memory."""
        os.close(self._memory)
