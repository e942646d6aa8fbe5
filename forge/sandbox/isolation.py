"""Which walls stand around a guest, and what they amount to.

The level is "namespaces" or "bubblewrap", by who built the mounts, only when every part in `REQUIRED` worked,
Landlock among them: a kernel without it leaves one wall on files where the evidence would claim two, so the level
falls to "none" and `missing` says why. A fresh /proc isn't required; a guest without one sees less, not more.
Neither is a cgroup, which ordinary users in containers lack: a watch bounds the tree's memory instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["none", "bubblewrap", "namespaces"]

LEVELS: tuple[Level, ...] = ("none", "bubblewrap", "namespaces")
"""Weakest first."""

REQUIRED = (
    *("user_ns", "pid_ns", "mount_ns", "net_ns", "ipc_ns", "uts_ns"),
    *("landlock", "seccomp", "no_new_privs", "no_capabilities", "unprivileged_uid", "rlimits"),
)
OPTIONAL = ("fresh_proc", "cgroup_memory", "cgroup_pids")


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
    missing = (*lacking, *(part for part in OPTIONAL if part not in families))
    walled: Level = "bubblewrap" if "bubblewrap" in families else "namespaces"
    return Isolation(level="none" if lacking else walled, parts=standing, missing=missing)
