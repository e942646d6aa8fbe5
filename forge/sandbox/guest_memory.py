"""Reads the memory of a stopped guest, so that a timed call needs no copy of its outputs.

Distrusts the guest, which says where its outputs lie. An address is only ever read. What lies there while the guest
is stopped is its answer, and memory that isn't there is refused.
"""

import os
from collections.abc import Collection

from forge.errors import EnvironmentUnfit


class GuestMemory:
    """The memory of a guest's first process: opened before it runs a candidate's code, and read after."""

    def __init__(self, pids: Collection[int]) -> None:
        """Open the memory of the only process in `pids`; a failure to do so is raised where it must be readable."""
        self._memory = -1
        self._denied = "" if len(pids) == 1 else f"the guest began with {len(pids)} processes, expected one"
        try:
            self._memory = os.open(f"/proc/{next(iter(pids), 0)}/mem", os.O_RDONLY)
        except OSError as denied:
            self._denied = self._denied or f"{denied.filename}: {denied.strerror}"

    def require_readable(self) -> None:
        """Raise EnvironmentUnfit if the memory couldn't be opened."""
        if self._denied:
            raise EnvironmentUnfit(
                f"the host may not read the memory of its guests ({self._denied}), so no call can be timed",
                hint="allow this user to trace its own child processes (ptrace); in a container, the default profile "
                "of seccomp does",
            )

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
        if self._memory >= 0:
            os.close(self._memory)
