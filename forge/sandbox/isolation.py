"""Defines which walls can stand around a guest, and which level of isolation they make.

The level is "namespaces" or "bubblewrap", depending on which program built the mounts, if every part in `REQUIRED`
worked. Landlock is one of them: without it only one wall protects files, while the evidence would claim two. The
level is then "none", and `missing` says why. A fresh /proc isn't required: a guest without it sees less, not more. A
cgroup isn't required either, since ordinary users in containers have none: a watch limits the tree's memory instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["none", "bubblewrap", "namespaces"]

LEVELS: tuple[Level, ...] = ("none", "bubblewrap", "namespaces")
"""Levels of isolation, the weakest first."""

REQUIRED = (
    *("user_ns", "pid_ns", "mount_ns", "net_ns", "ipc_ns", "uts_ns"),
    *("landlock", "seccomp", "no_new_privs", "no_capabilities", "unprivileged_uid", "rlimits"),
)
"""Walls that every level but "none" needs."""
OPTIONAL = ("fresh_proc", "cgroup_memory", "cgroup_pids")
"""Walls that are built if the machine can."""


@dataclass(frozen=True)
class Walls:
    """The walls between a guest and the host."""

    level: Level
    parts: tuple[str, ...]
    """Walls that stand; Landlock with its version, as `landlock_abi_7`."""
    missing: tuple[str, ...]
    """Walls that don't stand."""


def at_least(level: Level, minimum: Level) -> bool:
    """Return whether `level` is as strong as `minimum`; raise ValueError on a name that isn't in `LEVELS`."""
    for name in (level, minimum):
        if name not in LEVELS:
            raise ValueError(f"isolation level {name!r}: expected one of {', '.join(LEVELS)}")
    return LEVELS.index(level) >= LEVELS.index(minimum)


def judge(parts: Iterable[str]) -> Walls:
    """Return the isolation that `parts` make."""
    standing = tuple(parts)
    families = {"landlock" if part.startswith("landlock_abi_") else part for part in standing}
    lacking = tuple(part for part in REQUIRED if part not in families)
    missing = (*lacking, *(part for part in OPTIONAL if part not in families))
    walled: Level = "bubblewrap" if "bubblewrap" in families else "namespaces"
    return Walls(level="none" if lacking else walled, parts=standing, missing=missing)
