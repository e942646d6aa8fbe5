"""Finds out which walls this machine can build, by building them once around a program of Forge.

Distrusts documentation, kernel versions and configuration files.
"""

import functools
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from forge.errors import EnvironmentUnfit
from forge.sandbox.isolation import LEVELS, Level, Walls, judge
from forge.sandbox.launch import Confinement, Limits, masked_paths, runtime_binds, start

_NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts")

# `probe`'s guest runs this and reports which walls it sees. Without /proc it says nothing about some of them.
_LOOK = """
import ctypes, json, os, resource
seen = {"pid_ns": os.getpid() < 10, "unprivileged_uid": os.getuid() != 0}
try:
    os.listdir("/")
    seen["landlock"] = False
except PermissionError:
    seen["landlock"] = True
libc = ctypes.CDLL(None)
seen["no_new_privs"] = libc.prctl(39, 0, 0, 0, 0) == 1
seen["seccomp"] = libc.prctl(21, 0, 0, 0, 0) == 2
seen["rlimits"] = resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
try:
    seen["no_capabilities"] = "CapBnd:\\t0000000000000000" in open("/proc/self/status").read()
    seen["links"] = {name: os.readlink("/proc/self/ns/" + name) for name in NAMES}
except FileNotFoundError:
    pass
os.write(3, json.dumps(seen).encode())
"""


@dataclass(frozen=True)
class Rung:
    """One level of isolation, as it was found when it was tried."""

    level: Level
    isolation: Walls
    """Walls that stood. Their level is lower than the tried one if a required wall was missing."""
    problem: str | None
    """Error of the attempt, if it failed."""

    @property
    def reached(self) -> bool:
        """Whether guests can be started at this level."""
        return self.isolation.level == self.level


def probe() -> Walls:
    """Return the strongest isolation of this machine, or which walls are missing for one."""
    for level in reversed(LEVELS[1:]):
        if (rung := attempt(level)).reached:
            return rung.isolation
    return attempt(LEVELS[-1]).isolation


@functools.cache
def attempt(level: Level) -> Rung:
    """Build the walls around a small program that checks them; this process keeps the answer."""
    if level == "none":
        return Rung(level, judge(()), None)
    read_end, write_end = os.pipe()
    try:
        confined = Confinement(
            argv=(sys.executable, "-I", "-S", "-c", _LOOK.replace("NAMES", repr(_NAMESPACES))),
            binds=runtime_binds(),
            masked=masked_paths(),
            environment={},
            descriptors=(write_end,),
            limits=Limits(wall_s=20),
        )
        with start(confined, isolation=level) as guest:
            os.close(write_end)
            write_end = -1
            ended = guest.wait(20)
            untrusted_text = os.read(read_end, 1 << 16)
            if ended is None or ended.returncode != 0:
                return Rung(level, judge(()), f"Forge's own guest that checks its walls failed: {guest.log()!r}")
            return Rung(level, judge(_confirmed(guest.isolation.parts, untrusted_text)), None)
    except EnvironmentUnfit as error:
        return Rung(level, judge(()), str(error))
    finally:
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)


def _confirmed(parts: Iterable[str], report: bytes) -> list[str]:
    """Return the parts without those that Forge's own guest saw to be absent."""
    seen = json.loads(report)
    for name, link in seen.pop("links", {}).items():
        part = "mount_ns" if name == "mnt" else f"{name}_ns"
        seen[part] = seen.get(part, True) and link != os.readlink(f"/proc/self/ns/{name}")
    return [part for part in parts if seen.get("landlock" if part.startswith("landlock_") else part, True)]
