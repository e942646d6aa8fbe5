"""Watches how much memory a guest's whole tree takes if no cgroup limits it; limits per process don't limit a tree.

Distrusts the guest's own numbers and uses the kernel's. A process can hide pages from them that only a pipe or a
socket holds. Those still show in what the machine has left, and end the guest before the machine suffers.
"""

import contextlib
import os
import re
import stat
import time
from pathlib import Path
from typing import Literal

from forge.platforms.nvml import device_bytes
from forge.sandbox.cgroups import Group
from forge.sandbox.freeze import descendants, threads_of

Excess = Literal["total", "machine"]
"""Exceeded limit: the tree's memory, or the machine's available memory."""

LOOK_S = 0.05
"""Seconds between two looks, at least. For each GB/s at which a guest fills memory, it may exceed its limit by 50 MB
in that time."""
_DEEP_EVERY_S = 1.0
"""Seconds between two exact counts. Chosen; a shorter pause costs one more reading of every mapping of every
process."""
_SHARE_OF_A_CORE = 0.1
"""Share of a processor core that the watch may use. Chosen; a larger share takes processor time from the guests, and
a smaller one delays the next look at a large tree."""
RESERVE = 0.03
"""Share of the machine's memory that must stay available while an unbounded guest runs. Chosen; a larger share ends
guests earlier on a machine that is nearly full."""
_COUNTED = re.compile(r"^(?:RssAnon|RssShmem|VmPTE):\s+(\d+) kB", re.MULTILINE)
"""Pattern of the lines of /proc/PID/status whose kibibytes count as a guest's memory."""
_MEMORY = "\nRssAnon:"
"""Beginning of a line that the file status has only as long as its thread holds memory."""
_SHMEM = re.compile(r"^RssShmem:\s+(\d+) kB", re.MULTILINE)
_WRITABLE_SHARED = re.compile(".w.s")
_NAMELESS = ("/dev/zero (deleted)", "/memfd:", "/SYSV")
"""Beginnings of the names of shared memory that has no file."""


class Bounded:
    """A tree in a cgroup, whose limit the kernel enforces; one killed process ends the tree."""

    parts: tuple[str, ...] = ()

    def __init__(self, group: Group) -> None:
        self._group = group

    def look(self) -> Excess | None:
        """Return the exceeded limit, if there is one."""
        return self._group.excess()


class Watched:
    """Looks at one tree again and again; `root` is its PID 1, which isn't counted."""

    parts: tuple[str, ...] = ("memory_watch",)

    def __init__(
        self, root: int, limit_bytes: int, *, scratch: int | None, given: tuple[int, ...], reserve: float = RESERVE
    ) -> None:
        self._root = root
        self._limit_bytes = limit_bytes
        self._reserve = reserve
        self._scratch = scratch
        """Descriptor of the guest's tmpfs, whose pages belong to no process."""
        facts = [os.fstat(number) for number in given if stat.S_ISREG(os.fstat(number).st_mode)]
        self._given_inodes = {fact.st_ino for fact in facts}
        self._given_bytes = sum(fact.st_size for fact in facts)
        self._next_look_s = self._next_deep_s = 0.0

    def look(self) -> Excess | None:
        """Return the exceeded limit, if there is one; this is cheap, and may be called at any rate."""
        began_s = time.monotonic()
        if began_s < self._next_look_s:
            return None
        pids = descendants(self._root)
        deep = began_s >= self._next_deep_s or self._quick_bytes(pids) > self._limit_bytes
        if deep:
            self._next_deep_s = began_s + _DEEP_EVERY_S
        excess: Excess | None = "total" if deep and self._exact_bytes(pids) > self._limit_bytes else None
        if excess is None and _available_share() < self._reserve:
            excess = "machine"
        took_s = time.monotonic() - began_s
        self._next_look_s = began_s + max(LOOK_S, took_s / _SHARE_OF_A_CORE)
        return excess

    def _quick_bytes(self, pids: set[int]) -> int:
        """Return an estimate that is never below what `_exact_bytes` finds in mapped pages."""
        total = _scratch_bytes(self._scratch)
        for pid in pids:
            status = _text(pid, "status")
            shared_kb = sum(map(int, _SHMEM.findall(status)))
            total += 1024 * sum(map(int, _COUNTED.findall(status))) - min(1024 * shared_kb, self._given_bytes)
        return total

    def _exact_bytes(self, pids: set[int]) -> int:
        """Return the bytes of private pages, page tables, nameless shared memory and the scratch.

        Each page is counted once.
        """
        nameless: dict[tuple[str, str], int] = {}
        private = 0
        for pid in pids:
            rollup, status = _text(pid, "smaps_rollup"), _text(pid, "status")
            private += _field_bytes("Pss_Anon", rollup) if rollup else _field_bytes("RssAnon", status)
            private += _field_bytes("VmPTE", status)
            nameless.update(self._nameless(_text(pid, "maps")))
        return private + sum(nameless.values()) + _scratch_bytes(self._scratch)

    def _nameless(self, maps: str) -> dict[tuple[str, str], int]:
        """Return the bytes of shared mappings that aren't the host's, by inode and offset.

        Their pages may be in no table.
        """
        found: dict[tuple[str, str], int] = {}
        for line in maps.splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) < 6 or not _WRITABLE_SHARED.match(fields[1]) or not fields[5].startswith(_NAMELESS):
                continue
            if int(fields[4]) not in self._given_inodes:
                start, _, end = fields[0].partition("-")
                found[fields[4], fields[2]] = int(end, 16) - int(start, 16)
        return found


def held_bytes(root: int, scratch: int | None) -> int:
    """Return the memory of the tree's processes, also on GPUs, and of its scratch in bytes; `root` isn't counted.

    The result is 0 if the machine doesn't show a guest's memory. Shared memory counts for each process. Memory given
    to the guest counts too, and stays the same.
    """
    pids = descendants(root)
    statuses = [_text(pid, "status") for pid in pids]
    held = sum(_field_bytes(name, status) for status in statuses for name in ("RssAnon", "RssShmem"))
    return held + device_bytes(pids) + _scratch_bytes(scratch) if held else 0


def shows_memory() -> bool:
    """Return whether this system shows how much memory its processes hold, from what it shows of this one."""
    return _field_bytes("RssAnon", _text(os.getpid(), "status")) > 0


class Unwatched:
    """A tree whose memory isn't visible, since this system has no /proc."""

    parts: tuple[str, ...] = ()

    def look(self) -> Excess | None:
        """Return None: nothing is visible."""
        return None


def watch(
    group: Group, root: int, limit_bytes: int, *, scratch: int | None, given: tuple[int, ...]
) -> Bounded | Watched | Unwatched:
    """Return the best watch that this machine allows; memory `given` to the guest isn't counted as its own."""
    if group.bounds_memory:
        return Bounded(group)
    if not os.path.exists("/proc/meminfo"):
        return Unwatched()
    return Watched(root, limit_bytes, scratch=scratch, given=given)


def _available_share() -> float:
    facts = Path("/proc/meminfo").read_text()
    return _field_bytes("MemAvailable", facts) / max(1, _field_bytes("MemTotal", facts))


def _scratch_bytes(descriptor: int | None) -> int:
    if descriptor is None:
        return 0
    facts = os.fstatvfs(descriptor)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize


def _field_bytes(name: str, text: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


def _text(pid: int, name: str) -> str:
    """Return a file of a process; empty if the process is gone or doesn't allow it.

    A process whose first thread has ended shows its memory in the files of its other threads alone.
    """
    text = _read(f"/proc/{pid}/{name}")
    if text and (name != "status" or _MEMORY in text):
        return text
    others = (_read(f"{thread}/{name}") for thread in threads_of(pid))
    return next((other for other in others if other and (name != "status" or _MEMORY in other)), text)


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace")
    return ""
