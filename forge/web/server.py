"""Runs the server, and the workers that it starts as processes of their own and ends with itself."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from forge.errors import UsageError
from forge.web.connections import TimedConnection, room_for_connections

BACKLOG = 256
"""Number of connections that wait until the server takes them. Chosen; the server takes them within milliseconds."""
KEEP_S, GRACE_S = 5, 3
"""Time that an idle connection is kept, and time in which open answers may end when the server ends; in seconds."""
LARGEST_HEAD = 32 * 1024
"""Largest beginning of a request in bytes: its first line and headers."""


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; raise UsageError if the address can't be had."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, proto)
    except OSError as error:
        raise UsageError(f"bad host {host[:100]!r}: {error.strerror}; expected a name or an address") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise UsageError(
            f"can't listen on {host} port {port} ({error.strerror}): expected a free port; give another with --port",
            hint="forge serve --help",
        ) from error
    return made


def serve(app: FastAPI, listening: socket.socket, *, ready: Callable[[], None]) -> None:
    """Answer requests until the process is asked to end; call `ready` once before."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=TimedConnection,
        proxy_headers=False,  # else a caller on this machine could name another address as its own
        ws="none",
        lifespan="on",
        timeout_keep_alive=KEEP_S,
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
    TimedConnection.most = room_for_connections()
    ready()
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def workers(count: int, home: Path) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Start `count` workers, and end them with the block; they also end if this process is killed."""
    command = [sys.executable, "-m", "forge", "work", "--home", str(home), "--ends-with", str(os.getpid())]
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.extend(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for _ in range(count)
        )
        yield started
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait()
