"""Makes a cgroup for each guest if this user may: the kernel then limits memory in total and the number of tasks.

Reads what is mounted and writable on this machine. A process joins its group before the guest's plan is sent, so that
all its children are in the group. Ordinary users in containers can't make groups; `memory` then watches from outside.
A group's name says which host process made it. If that process was killed, the next host that starts removes the
group.
"""

import contextlib
import functools
import itertools
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forge.sandbox.limits import Limits

Controller = Literal["memory", "pids", "cpuacct"]

CONTROLLERS: tuple[Controller, ...] = ("memory", "pids")
"""Controllers that limit a guest."""
PARTS: dict[Controller, str] = {"memory": "cgroup_memory", "pids": "cgroup_pids"}
"""Name of each controller's wall in an isolation."""
SUPERVISING_TASKS, SUPERVISING_BYTES = 8, 64 << 20
"""Number of tasks and bytes that Forge's own processes may have beyond the guest's limits. They are supervisor,
bubblewrap and PID 1, and one may end while another begins."""
HUGE_PAGE_BYTES = 2 << 20
"""Size of a huge page in bytes. A group that can't take one more may be killed with so much left."""
_NAME = re.compile(r"forge-(\d+)-(\d+)-(\d+)-\d+")
_CLOCK_BYTES = 4096
"""Number of bytes that one reading of a group's processor time asks for; the kernel gives a few hundred. It is read
twice for each answer of a guest, so the buffers and the type checks of `open` are avoided."""
_REMOVAL_S = 2.0
"""Seconds to wait for a group's last process before its removal is given up. Chosen; a killed process ends within
milliseconds."""
_serial = itertools.count()


@dataclass(frozen=True)
class CgroupPlace:
    """A directory in which groups with one controller can be made."""

    directory: Path
    version: Literal[1, 2]


@dataclass(frozen=True)
class Unavailable:
    """The reason why there is no such place, and the next step."""

    reason: str
    hint: str


class Group:
    """One guest's group, with a directory for each available hierarchy."""

    def __init__(self, pid: int, limits: Limits) -> None:
        self.parts: tuple[str, ...] = ()
        self._directories: list[Path] = []
        self._memory: tuple[Path, int] | None = None
        name = f"{_owner_name()}-{next(_serial)}"
        counting = find("cpuacct")  # only in version 1, where the other controllers don't count processor time
        if isinstance(counting, CgroupPlace):
            self._join(counting.directory / name, pid, {})
        for controller in CONTROLLERS:
            place = find(controller)
            if isinstance(place, CgroupPlace) and self._join(
                place.directory / name, pid, _settings(place, controller, limits)
            ):
                self.parts += (PARTS[controller],)
                if controller == "memory":
                    self._memory = place.directory / name, place.version
        files = (f"{one}/{file}" for one in self._directories for file in ("cpuacct.usage", "cpu.stat"))
        self._clock = next(filter(os.path.exists, files), None)

    def _join(self, directory: Path, pid: int, settings: dict[str, int]) -> bool:
        """Make the group, set its limits, and move `pid` in; return False if a limit can't be set."""
        try:
            if directory not in self._directories:
                directory.mkdir()
                self._directories.append(directory)
            for file, value in settings.items():
                _write(directory / file, value)
            _write(directory / "cgroup.procs", pid)
        except OSError:
            return False
        with contextlib.suppress(OSError):  # these limit swap and kill all tasks together; not every kernel has them
            _write(directory / "memory.memsw.limit_in_bytes", settings.get("memory.limit_in_bytes", 0))
        with contextlib.suppress(OSError):
            _write(directory / "memory.oom.group", 1)
        return True

    @property
    def bounds_memory(self) -> bool:
        """Whether the kernel limits the tree's memory."""
        return self._memory is not None

    def excess(self) -> Literal["total", "machine"] | None:
        """Return which memory ran out if the kernel has killed a process of the group for it."""
        if self._memory is None:
            return None
        directory, version = self._memory
        try:
            if version == 2:
                return excess_in((directory / "memory.events").read_text())
            return excess_in(
                f"{(directory / 'memory.oom_control').read_text()}\noom {int(_reached_limit(directory))}"
            )
        except OSError:
            return None

    def cpu_ns(self) -> int | None:
        """Return the processor nanoseconds of all that ran in the group; None if this kernel doesn't count them."""
        if self._clock is None:
            return None
        try:
            clock = os.open(self._clock, os.O_RDONLY)
        except OSError:
            return None
        try:
            fields = os.read(clock, _CLOCK_BYTES).split()
            return int(fields[0]) if len(fields) == 1 else 1000 * int(fields[fields.index(b"usage_usec") + 1])
        except (OSError, ValueError):
            return None
        finally:
            os.close(clock)

    def remove(self) -> None:
        """Remove the group once its last process is gone."""
        deadline_s = time.monotonic() + _REMOVAL_S
        while self._directories and time.monotonic() < deadline_s:
            self._directories = [directory for directory in self._directories if not _removed(directory)]
            if self._directories:
                time.sleep(0.002)


def _reached_limit(directory: Path) -> bool:
    """Return whether a group of version 1 had all the memory that it may have; newer kernels count no hits there."""
    used = int((directory / "memory.max_usage_in_bytes").read_text())
    with contextlib.suppress(OSError):  # with swap, which not every kernel counts
        used = max(used, int((directory / "memory.memsw.max_usage_in_bytes").read_text()))
    return used >= int((directory / "memory.limit_in_bytes").read_text()) - HUGE_PAGE_BYTES


def excess_in(events: str) -> Literal["total", "machine"] | None:
    """Return what a group's counts of events say of its killed processes.

    `oom_kill` also counts processes that were killed for want of memory elsewhere, above the group or on the whole
    machine. `oom` counts how often the group itself reached its limit.
    """
    counts = dict(line.split(maxsplit=1) for line in events.splitlines() if line.strip())
    if counts.get("oom_kill", "0") == "0":
        return None
    return "machine" if counts.get("oom", "").strip() == "0" else "total"


def _settings(place: CgroupPlace, controller: Controller, limits: Limits) -> dict[str, int]:
    match controller:
        case "pids":
            return {"pids.max": limits.processes + SUPERVISING_TASKS}
        case "cpuacct":
            return {}
        case "memory" if place.version == 1:
            return {"memory.limit_in_bytes": limits.total_memory_bytes + SUPERVISING_BYTES}
        case "memory":
            return {"memory.swap.max": 0, "memory.max": limits.total_memory_bytes + SUPERVISING_BYTES}


@functools.cache
def find(controller: Controller) -> CgroupPlace | Unavailable:
    """Return where groups can be made; this process keeps the answer. Groups of dead host processes are removed."""
    answer = _search(controller)
    if isinstance(answer, CgroupPlace):
        sweep(answer.directory)
    return answer


def _search(controller: Controller) -> CgroupPlace | Unavailable:
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        memberships = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return Unavailable("this system has no cgroups", "use Linux")
    own: Path | None = None
    for _, controllers, path in memberships:
        version: Literal[1, 2] = 1 if controllers else 2
        if version == 1 and controller not in controllers.split(","):
            continue
        directory = _directory(mounts, path, "cgroup2" if version == 2 else controller)
        if directory is None:
            continue
        own = own or directory
        place = _unified(directory) if version == 2 else directory
        if place is not None and _usable(place, controller, version):
            return CgroupPlace(place, version)
    if own is None:
        return Unavailable(f"the {controller} controller isn't mounted", "mount cgroup2 at /sys/fs/cgroup")
    return Unavailable(
        f"no group above {str(own)!r} can be written by this user and passes on the {controller} controller",
        "systemd-run --user --scope -p Delegate=yes forge ..."
        if os.path.isdir("/run/systemd/system")
        else "have root give this user a group with the memory and pids controllers, and start forge in it",
    )


def _directory(mounts: list[str], path: str, kind: str) -> Path | None:
    """Return where a hierarchy shows the group `path`; None if it isn't mounted, or only another part of it is."""
    for line in mounts:
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        file_system, _, options = after.split(maxsplit=2)
        if file_system == "cgroup2" if kind == "cgroup2" else file_system == "cgroup" and kind in options.split(","):
            inside = os.path.relpath(path, root)
            return None if inside.startswith("..") else Path(os.path.normpath(f"{point}/{inside}"))
    return None


def _unified(directory: Path) -> Path | None:
    """Return one place for all controllers of version 2, since a process is in one group; else a place for memory."""
    above = (directory, *directory.parents)
    for wanted in (CONTROLLERS, ("memory",)):
        for place in above:
            if all(_usable(place, controller, 2) for controller in wanted):
                return place
    return None


def _usable(directory: Path, controller: Controller, version: Literal[1, 2]) -> bool:
    """Return whether groups can be made here and processes moved in; version 2 passes on only enabled controllers."""
    if not (os.access(directory, os.W_OK) and os.access(directory / "cgroup.procs", os.W_OK)):
        return False
    try:
        return version == 1 or controller in (directory / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def sweep(directory: Path) -> None:
    """Remove groups whose maker is dead. Groups of another PID namespace stay, since their maker isn't visible."""
    ours = _namespace()
    for entry in directory.iterdir():
        if (named := _NAME.fullmatch(entry.name)) is None or int(named[1]) != ours:
            continue
        if _start_ticks(int(named[2])) != int(named[3]):
            _removed(entry)


def _owner_name() -> str:
    return f"forge-{_namespace()}-{os.getpid()}-{_start_ticks(os.getpid())}"


def _namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _start_ticks(pid: int) -> int | None:
    """Return when a process started (proc(5): field 22), to tell it from a later one with the same number."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _write(path: Path, value: int) -> None:
    path.write_text(str(value))


def explain() -> Iterator[tuple[str, Unavailable]]:
    """Yield the walls that aren't available here, with the reason."""
    for controller in CONTROLLERS:
        if isinstance(answer := find(controller), Unavailable):
            yield PARTS[controller], answer
