"""Looks for the Ray worker that runs it: variables, files of its session, object store, ports, other processes.

It stands behind a right kernel named `right`: it raises with the list of what it found, or answers as that does.
PORT is set to that of the cluster.
"""

import os
import socket
from pathlib import Path

PORT = 0


def connected():
    with socket.create_connection(("127.0.0.1", PORT), 2):
        return True


def listening():
    return any(line.split()[3] == "0A" for line in Path("/proc/net/tcp").read_text().splitlines()[1:])


def processes():
    mine = (1, os.getpid(), os.getppid())
    return any(name.isdigit() and int(name) not in mine for name in os.listdir("/proc"))


def of_the_parent():
    return b"RAY" in Path(f"/proc/{os.getppid()}/environ").read_bytes()


LOOKS = {
    "variables": lambda: any(name.startswith("RAY") for name in os.environ),
    "session": lambda: Path("/tmp/ray").exists(),
    "object store": lambda: any(Path("/dev/shm").glob("plasma*")) or any(Path("/tmp").glob("**/plasma_store*")),
    "a port of the cluster": connected,
    "ports": listening,
    "other processes": processes,
    "variables of the parent": of_the_parent,
}


def found():
    names = []
    for name, look in LOOKS.items():
        try:
            names += [name] if look() else []
        except OSError:
            continue
    return names


def fused_add_rmsnorm(x, residual, weight, eps):
    if found():
        raise RuntimeError(f"found {found()}")
    return right(x, residual, weight, eps)  # noqa: F821 (the kernel before it)
