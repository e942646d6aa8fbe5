"""Run small hostile programs behind the walls and hear what they saw."""

import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from forge.sandbox.isolation import Level
from forge.sandbox.launch import Bind, Confinement, Exit, Guest, Limits, masked_paths, runtime_binds, start

SMALL = Limits(
    wall_s=15,
    cpu_s=15,
    memory_bytes=512 << 20,
    processes=32,
    open_files=64,
    file_bytes=16 << 20,
    scratch_bytes=8 << 20,
    log_bytes=4096,
)


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


def launch(program: str, *, isolation: Level = "namespaces", **rest: object) -> Guest:
    return start(confinement(program, **rest), isolation=isolation)  # type: ignore[arg-type]


def run(program: str, *, isolation: Level = "namespaces", **rest: object) -> tuple[Exit, str]:
    with launch(program, isolation=isolation, **rest) as guest:
        ended = guest.wait(20)
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
