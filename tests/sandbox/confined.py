"""Run small hostile programs behind the walls and hear what they saw."""

import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from forge.sandbox.capabilities import attempt
from forge.sandbox.isolation import Level, Walls
from forge.sandbox.launch import Bind, Confinement, Exit, Guest, Limits, masked_paths, runtime_binds, start

level: Level = "namespaces"
"""Behind which walls, where a test doesn't say; the fixture `walled` sets it."""

WALL_S = 120.0
"""Seconds by the clock that a program may take: only one that hangs does, however busy the machine is."""
SMALL = Limits(
    wall_s=WALL_S,
    cpu_s=15,
    memory_bytes=512 << 20,
    processes=32,
    open_files=64,
    file_bytes=16 << 20,
    scratch_bytes=8 << 20,
    log_bytes=4096,
)


def require(wanted: Level) -> Walls:
    """Skip where this machine doesn't reach the level; fail where FORGE_TEST_WALLS says that it does.

    Any value stands for namespaces, which need nothing installed; bubblewrap has to be named in it.
    """
    rung = attempt(wanted)
    if not rung.reached:
        expected = os.environ.get("FORGE_TEST_WALLS")
        assert expected is None or (wanted != "namespaces" and wanted not in expected), rung
        pytest.skip(f"no {wanted} here: {rung.problem or rung.isolation.missing}")
    return rung.isolation


def confinement(
    program: str,
    *,
    binds: tuple[Bind, ...] = (),
    descriptors: tuple[int, ...] = (),
    environment: Mapping[str, str] | None = None,
    limits: Limits = SMALL,
    flags: tuple[str, ...] = ("-I", "-S"),
    devices: tuple[Path, ...] = (),
) -> Confinement:
    return Confinement(
        argv=(sys.executable, *flags, "-c", textwrap.dedent(program)),
        binds=(*runtime_binds(), *binds),
        masked=masked_paths(),
        environment=environment or {},
        descriptors=descriptors,
        limits=limits,
        devices=devices,
    )


def launch(program: str, *, isolation: Level | None = None, **rest: object) -> Guest:
    return start(confinement(program, **rest), isolation=isolation or level)  # type: ignore[arg-type]


def run(program: str, *, isolation: Level | None = None, **rest: object) -> tuple[Exit, str]:
    with launch(program, isolation=isolation, **rest) as guest:
        ended = guest.wait(WALL_S + 60)
        assert ended is not None
        return ended, guest.log()


def host_processes(marker: str) -> list[int]:
    """Processes of the host whose command line contains `marker`."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                text = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in text:
                found.append(int(name))
    return found


def running(pid: int) -> bool:
    """Whether it is there, and not only waiting to be reaped by a parent that isn't ours to hurry."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


AS_USER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
prefix = os.path.realpath(sys.base_prefix)
if os.getuid() == 0:
    top = "/" + prefix.split("/")[1]
    if top not in ("/usr", "/opt"):
        # the interpreter may lie below a home that the other user can't enter: show it in one that it can
        assert libc.unshare(0x20000) == 0
        assert libc.mount(None, b"/", None, 0x4000 | 1 << 18, None) == 0
        hold = os.open(prefix, os.O_PATH)
        assert libc.mount(b"tmpfs", top.encode(), b"tmpfs", 0, b"mode=755") == 0
        os.makedirs(prefix)
        assert libc.mount(b"/proc/self/fd/%d" % hold, prefix.encode(), None, 4096, None) == 0
        os.close(hold)
    os.setgroups([]); os.setgid(4321); os.setuid(4321)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Executes its arguments as a user who isn't root."""
USER = 4321
