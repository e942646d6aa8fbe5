"""Defines what a guest is given: a program, a view of the disk, descriptors, an environment; nothing by default."""

import os
import posixpath
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forge.sandbox.guest_entry.plan import EntryPlan, Level
from forge.sandbox.limits import Limits

SCRATCH = "/scratch"
RESERVED = frozenset({"/", "/dev", "/dev/shm", "/proc", SCRATCH, "/tmp"})  # noqa: S108 - names inside the guest
"""Paths in a guest that no bind may replace."""


@dataclass(frozen=True)
class Bind:
    """A file or directory of the host at a path in the guest, read-only unless `writable`.

    If the host is root, the guest has uid 65534 on disk, so a writable directory must let others write. A source that
    is a symlink into another bind, as /bin often is, becomes the same symlink.
    """

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """Everything that one guest gets."""

    argv: tuple[str, ...]
    binds: tuple[Bind, ...]
    masked: tuple[str, ...]
    """Paths inside bound trees that are empty for the guest."""
    environment: Mapping[str, str]
    descriptors: tuple[int, ...]
    """Descriptors that become 3, 4, 5, ... in the guest; the caller's own copies stay open."""
    limits: Limits
    devices: tuple[Path, ...] = ()


def plan(confinement: Confinement, level: Level, scratch: str) -> EntryPlan:
    """Turn a confinement into the plan that `enter` carries out; raise ValueError if it contradicts itself.

    At level none the guest sees the host's files. So guest paths in arguments and environment become the paths of
    their sources on the host, and /scratch becomes `scratch`.
    """
    if not confinement.argv:
        raise ValueError("argv is empty: expected a program to run")
    binds, links = _resolved(confinement.binds)
    argv, environment = list(confinement.argv), dict(confinement.environment)
    if level == "none":
        places = [(target, source) for source, target, _ in binds if source != target] + [(SCRATCH, scratch)]
        argv = [_translated(text, places) for text in argv]
        environment = {
            name: ":".join(_translated(piece, places) for piece in text.split(":"))
            for name, text in environment.items()
        }
    return EntryPlan(
        level=level,
        host_pid=os.getpid(),
        argv=argv,
        environment=environment,
        directory=scratch if level == "none" else SCRATCH,
        binds=binds,
        links=links,
        masked=[_checked_target(path) for path in confinement.masked],
        devices=[_checked_device(path) for path in confinement.devices],
        descriptors=list(confinement.descriptors),
        rlimits=_rlimits(confinement.limits, level),
        scratch_bytes=confinement.limits.scratch_bytes,
    )


def _rlimits(limits: Limits, level: Level) -> dict[str, int]:
    wanted = {
        "FSIZE": limits.file_bytes,
        "NOFILE": limits.open_files,
        "CPU": limits.cpu_s,
    }
    if not limits.shadow:
        wanted["DATA"] = limits.data_bytes
    if level != "none":  # without a user namespace the limit would count all of the user's processes
        wanted["NPROC"] = limits.processes
    return wanted


def _resolved(binds: Sequence[Bind]) -> tuple[list[tuple[str, str, bool]], list[tuple[str, str]]]:
    targets = [_checked_target(bind.target) for bind in binds]
    if len(set(targets)) < len(targets):
        raise ValueError(f"a target is bound twice in {sorted(targets)!r}")
    mounts, links = [], []
    for bind, target in zip(binds, targets, strict=True):
        real = bind.source.resolve(strict=True)
        if bind.source.is_symlink() and _within(str(real), [other for other in targets if other != target]):
            links.append((target, os.readlink(bind.source)))
        else:
            mounts.append((str(real), target, bind.writable))
    return mounts, links


def _within(path: str, trees: Sequence[str]) -> bool:
    return any(path == tree or path.startswith(tree + "/") for tree in trees)


def _checked_target(path: str) -> str:
    if not path.startswith("/") or posixpath.normpath(path) != path or path in RESERVED:
        raise ValueError(f"target {path!r}: expected a normal absolute path, none of {sorted(RESERVED)!r}")
    return path


def _checked_device(path: Path) -> str:
    real = path.resolve(strict=True)
    if not stat.S_ISCHR(real.stat().st_mode) or real.parts[:2] != ("/", "dev"):
        raise ValueError(f"device {str(path)!r}: expected a character device below /dev")
    return str(real)


def _translated(text: str, places: Sequence[tuple[str, str]]) -> str:
    for target, source in places:
        if _within(text, [target]):
            return source + text[len(target) :]
    return text
