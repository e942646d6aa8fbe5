"""Which walls stand around a guest, and which this machine can build: found out by building them once.

Distrusts documentation, kernel versions and configuration files. The level is "namespaces" only when every
part in `REQUIRED` worked, Landlock among them: a kernel without it leaves one wall on files where the
evidence would claim two, so the level falls to "none" and `missing` says why. A fresh /proc isn't required; a
guest without one sees less, not more.
"""

import functools
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from forge.errors import EnvironmentUnfit
from forge.sandbox.limits import Limits

Level = Literal["none", "namespaces"]

LEVELS: tuple[Level, ...] = ("none", "namespaces")
"""Weakest first."""

_NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts")
REQUIRED = (
    *("user_ns", "pid_ns", "mount_ns", "net_ns", "ipc_ns", "uts_ns"),
    *("landlock", "seccomp", "no_new_privs", "no_capabilities", "unprivileged_uid", "rlimits"),
)

# Run by the guest of `probe`: what it sees of its own walls. Without /proc it says nothing about those parts.
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
class Isolation:
    """What stands between a guest and the host."""

    level: Level
    parts: tuple[str, ...]
    """The walls that stand; Landlock with its version, as `landlock_abi_7`."""
    missing: tuple[str, ...]
    """The walls that don't."""


def at_least(level: Level, minimum: Level) -> bool:
    """Say whether `level` is as strong as `minimum`; raises ValueError on a name that isn't in `LEVELS`."""
    for name in (level, minimum):
        if name not in LEVELS:
            raise ValueError(f"isolation level {name!r}: expected one of {', '.join(LEVELS)}")
    return LEVELS.index(level) >= LEVELS.index(minimum)


def judge(parts: Iterable[str]) -> Isolation:
    """Return the isolation that `parts` amount to."""
    standing = tuple(parts)
    families = {"landlock" if part.startswith("landlock_abi_") else part for part in standing}
    lacking = tuple(part for part in REQUIRED if part not in families)
    missing = lacking if "fresh_proc" in families else (*lacking, "fresh_proc")
    return Isolation(level="none" if lacking else "namespaces", parts=standing, missing=missing)


@functools.cache
def probe() -> Isolation:
    """Build the walls around a trivial program that looks at them; the answer is kept for this process."""
    from forge.sandbox import confinement, launch, runtime

    program = _LOOK.replace("NAMES", repr(_NAMESPACES))
    read_end, write_end = os.pipe()
    try:
        confined = confinement.Confinement(
            argv=(sys.executable, "-I", "-S", "-c", program),
            binds=runtime.runtime_binds(),
            masked=runtime.masked_paths(),
            environment={},
            descriptors=(write_end,),
            limits=Limits(wall_s=20),
        )
        with launch.start(confined, isolation="namespaces") as guest:
            os.close(write_end)
            write_end = -1
            ended = guest.wait(20)
            untrusted_text = os.read(read_end, 1 << 16)
            if ended is None or ended.returncode != 0:
                return judge(())
            return judge(_confirmed(guest.isolation.parts, untrusted_text))
    except EnvironmentUnfit:
        return judge(())
    finally:
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)


def _confirmed(parts: Iterable[str], report: bytes) -> list[str]:
    """Drop every part that the guest, which is our own program here, saw to be absent."""
    seen = json.loads(report)
    for name, link in seen.pop("links", {}).items():
        part = "mount_ns" if name == "mnt" else f"{name}_ns"
        seen[part] = seen.get(part, True) and link != os.readlink(f"/proc/self/ns/{name}")
    return [part for part in parts if seen.get("landlock" if part.startswith("landlock_") else part, True)]
