"""Tries every level of isolation on this machine, and reports what it lacks with the reason and the next step.

Only failed attempts count as missing. Settings are read only to suggest what to change.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forge.sandbox import cgroups
from forge.sandbox.capabilities import Rung, attempt
from forge.sandbox.guest_entry import bubblewrap
from forge.sandbox.isolation import LEVELS, Level

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_SETTINGS = (
    (_APPARMOR, "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "16384"),
)
"""Settings with which a kernel refuses user namespaces: name, the refusing value, the allowing value."""


@dataclass(frozen=True)
class Lack:
    """Something that is missing: a level, or a part of a level that stands."""

    what: str
    reason: str
    next_step: str


@dataclass(frozen=True)
class Step:
    """One level, whether it was reached, and what it lacks."""

    level: Level
    reached: bool
    lacks: tuple[Lack, ...]


def ladder() -> tuple[Step, ...]:
    """Return all levels, the strongest first."""
    return tuple(_step(attempt(level)) for level in reversed(LEVELS))


def _step(rung: Rung) -> Step:
    if rung.level == "none":
        return Step(rung.level, reached=True, lacks=())
    if rung.reached:
        return Step(rung.level, reached=True, lacks=tuple(_optional(rung)))
    reason = rung.problem or f"missing: {', '.join(rung.isolation.missing)}"
    return Step(rung.level, reached=False, lacks=(Lack(rung.level, reason, _advice(rung.level, reason)),))


def _optional(rung: Rung) -> Iterator[Lack]:
    why = dict(cgroups.explain())
    for part in rung.isolation.missing:
        if part in why:
            yield Lack(part, why[part].reason, why[part].hint)
        elif part == "fresh_proc":
            yield Lack(
                part, "an outer container hides parts of its /proc", "start that container with an unmasked /proc"
            )
        else:
            yield Lack(part, "it could be made, but not used", "look at the group's limits and its owner")


def _advice(level: Level, reason: str) -> str:
    if sys.platform != "linux":
        return "judge on Linux: there are no such walls on this system"
    if "landlock" in reason:
        return "boot a kernel from 5.13 on, with landlock in its list of security modules (lsm=landlock,...)"
    if level == "bubblewrap" and bubblewrap.program() is None:
        return "apt install bubblewrap"
    settings = [f"sysctl {name}={wanted}" for name, refusing, wanted in _SETTINGS if _setting(name) == refusing]
    if level == "bubblewrap" and _setting(_APPARMOR) == "1":
        profile = "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict"
        return f"apt install apparmor-profiles && ln -s {profile} /etc/apparmor.d/ && systemctl reload apparmor"
    if settings:
        return " && ".join(settings)
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        user = "--user 1000:1000 " if os.geteuid() == 0 else ""  # a container's root may not make namespaces
        return f"start the container with {user}--security-opt seccomp=unconfined, or run outside of it"
    return "run as a user who may create user namespaces"


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return None
