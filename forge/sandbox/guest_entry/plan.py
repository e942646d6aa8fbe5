"""What the host asked for, and the messages that go back to it.

The plan comes from the host over an inherited socket and is trusted. It is still read into exact fields. A missing
or misspelt one then stops the start instead of leaving a wall unbuilt. Every message is one JSON
line, written by our own processes: the guest never holds this socket.
"""

import array
import json
import os
import socket
from typing import Literal, NamedTuple

Level = Literal["none", "bubblewrap", "namespaces"]

INIT, SCRATCH = b'{"init": true}\n', b'{"scratch": true}\n'
"""Lines that a descriptor comes with: a pidfd of PID 1, and the guest's scratch."""
FORK, FORK_ZYGOTE = b"f", b"z"
"""Orders to a zygote: to fork a guest, or another zygote that imports more modules."""


class EntryPlan(NamedTuple):
    """Everything `enter` needs to know; paths are absolute and contain no symlink unless said otherwise.

    A named tuple, because importing `dataclasses` would take a fifth of the time to start.
    """

    level: Level
    host_pid: int
    argv: list[str]
    environment: dict[str, str]
    directory: str
    """Working directory at the guest's start: /scratch, or a temporary directory at level none."""
    binds: list[tuple[str, str, bool]]
    """Binds: source on the host, target in the guest, writable."""
    links: list[tuple[str, str]]
    """Symlinks, as pairs of their place and their text."""
    masked: list[str]
    devices: list[str]
    descriptors: list[int]
    """Numbers in this process of the descriptors that become 3, 4, 5, ... in the guest."""
    rlimits: dict[str, int]
    scratch_bytes: int

    def line(self) -> bytes:
        """Return the plan as the one line that `receive` reads."""
        return json.dumps(self._asdict()).encode() + b"\n"


def receive(channel: socket.socket) -> EntryPlan:
    """Read the plan, up to its newline; raises if the host went away first or a field is missing."""
    data = b""
    while not data.endswith(b"\n"):
        piece = channel.recv(1 << 16)
        if not piece:
            raise ValueError("the host closed the channel before the plan was complete")
        data += piece
    return parse(data)


def parse(line: bytes) -> EntryPlan:
    """Read the plan from its line; raises if a field is missing."""
    fields = json.loads(line)
    fields["binds"] = [tuple(bind) for bind in fields["binds"]]
    fields["links"] = [tuple(link) for link in fields["links"]]
    return EntryPlan(**fields)


def tell(channel: socket.socket, **message: object) -> None:
    """Send one message; a host that is gone isn't an error here, the parent watch ends us."""
    try:
        channel.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        return


def send_descriptor(channel: socket.socket, descriptor: int, line: bytes = INIT) -> None:
    """Hand the host a descriptor, of PID 1 for one: a number could have been reused by the time it is read."""
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
    try:
        channel.sendmsg([line], [rights])
    except OSError:
        return
    finally:
        os.close(descriptor)
