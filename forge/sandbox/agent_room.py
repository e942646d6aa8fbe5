"""Starts a user's coding agent where it sees its own directory, its toolchain and what the user allows, and no more.

The network stays, since the agent asks its own provider. Everything else that it could reach on the host is absent.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forge.errors import EnvironmentUnfit, UsageError
from forge.sandbox.capabilities import probe
from forge.sandbox.confinement import Bind, Confinement, plan
from forge.sandbox.limits import Limits

ROOM, GATE = "/agent", "/run/forge"
"""Paths inside: the agent's own directory, and the folder with the socket and the `forge` command."""
TOOLCHAIN = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
"""Folders of the host that hold compilers, interpreters and libraries."""
OF_THE_NETWORK = ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/ssl", "/etc/ca-certificates", "/etc/pki")
"""Files of the host without which names and certificates can't be looked up."""
SCRATCH_BYTES = 2**30
"""Size of the agent's /tmp in bytes, at most. Chosen: half of what a candidate's guest has. The scratch is in memory,
so a larger one costs that much of it."""


@dataclass(frozen=True, kw_only=True)
class AgentRoom:
    """Folders, command line and environment that a coding agent runs with."""

    directory: Path
    """Directory on the host that the agent may write to; it belongs to this agent alone."""
    gate: Path
    """Folder with the socket and the `forge` command."""
    argv: tuple[str, ...]
    allowed: tuple[Bind, ...] = ()
    hidden: tuple[Path, ...] = ()
    """Paths that are empty inside, if they lie in a folder that the agent sees."""
    environment: Mapping[str, str]


def start(room: AgentRoom) -> "subprocess.Popen[bytes]":
    """Start the agent; its output comes over a pipe. Killing the process ends the agent's whole tree.

    Raises EnvironmentUnfit if this machine can't build the walls.
    """
    if probe().level != "namespaces":
        raise EnvironmentUnfit(
            f"the sandbox reaches {probe().level!r} here: expected 'namespaces', which a coding agent needs",
            hint="forge doctor",
        )
    binds = [
        *(Bind(Path(one), one) for one in TOOLCHAIN if os.path.lexists(one)),
        *(Bind(Path(one), one) for one in OF_THE_NETWORK if os.path.exists(one)),
        Bind(room.gate, GATE),
        Bind(room.directory, ROOM, writable=True),
    ]
    python = Path(sys.base_prefix).resolve()
    if not any(python.is_relative_to(one) for one in TOOLCHAIN):
        binds.append(Bind(python, str(python)))
    confinement = Confinement(
        argv=room.argv,
        binds=(*binds, *room.allowed),
        masked=tuple(str(one.resolve()) for one in room.hidden),
        environment=room.environment,
        descriptors=(),
        limits=Limits(scratch_bytes=SCRATCH_BYTES),
    )
    orders = plan(confinement, "namespaces", ROOM)._replace(directory=ROOM)
    started = subprocess.Popen(
        [sys.executable, "-I", "-m", "forge.sandbox.guest_entry.agent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert started.stdin is not None
    started.stdin.write(orders.line())
    started.stdin.close()
    return started


def allowed_bind(untrusted_text: str, hidden: Sequence[Path]) -> Bind:
    """Return the path of an `--allow PATH` or `--allow PATH:rw`; raise UsageError if it would show what is hidden."""
    text, writable = untrusted_text.removesuffix(":rw"), untrusted_text.endswith(":rw")
    path = Path(text).expanduser()
    if not path.exists():
        raise UsageError(f"--allow {text!r:.200}: no such path; expected one that is there")
    real = path.resolve()
    for one in hidden:
        kept = one.resolve()
        if real.is_relative_to(kept) or kept.is_relative_to(real):
            raise UsageError(
                f"--allow {text!r:.200}: it would show {str(kept)!r}, which an agent never sees; name another path"
            )
    return Bind(real, str(real), writable=writable)


def found_program(name: str, allowed: Sequence[Bind]) -> str:
    """Return the path of an agent's program as it is seen inside; raise UsageError."""
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"no program {name!r:.100} is on the PATH: expected the command of a coding agent")
    seen = [*TOOLCHAIN, *(one.target for one in allowed)]
    for path in (Path(found), Path(found).resolve()):
        if not any(path.is_relative_to(one) for one in seen):
            raise UsageError(
                f"{str(path)!r} isn't in a folder that the agent sees: expected --allow {str(path.parent)!r} too"
            )
    return found
