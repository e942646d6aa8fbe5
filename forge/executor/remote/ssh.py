"""A connection to the Forge of another machine over ssh, by standard input and output."""

import os
import select
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from forge.domain.digest import sha256
from forge.errors import RemoteFailed, UsageError
from forge.executor.remote.frames import Frame, last_frame, read_frame, write_frame
from forge.lab.job import Progress

ANSWER_COMMAND = "forge work answer"
"""Command that the other machine runs. The address's path replaces the program `forge`."""
SILENT_S = 60.0
"""Time without any message after which a machine counts as lost, in seconds. It sends a sign of life every 5 s."""
END_S = 10.0
"""Time that the other side has to end after its connection was closed, in seconds: its guests have as long there."""


def ssh_command(address: str) -> list[str]:
    """Return the command that starts Forge behind `ssh://[user@]host[:port][/path/of/forge]`; raise UsageError."""
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = 0
    host = parts.hostname or ""
    allowed = parts.scheme == "ssh" and host and not host.startswith("-") and port != 0
    if not allowed or parts.query or parts.fragment or parts.password or (parts.username or "").startswith("-"):
        raise UsageError(
            f"bad address {address!r:.200}: expected ssh://[user@]host[:port][/path/of/forge], without a password",
            hint="forge work --on ssh://gpu-box",
        )
    user = ["-l", parts.username] if parts.username else []
    at = ["-p", str(port)] if port else []
    program = shlex.quote(parts.path) if parts.path not in ("", "/") else "forge"
    answer = ANSWER_COMMAND.replace("forge", program, 1)
    return ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", *user, *at, "--", host, answer]


class SshConnection:
    """A connection over the standard streams of a command, usually ssh."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name, self.node = name, sha256(f"forge node {urlsplit(name).hostname}".encode())
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._greeting = b""

    def hello(self) -> bytes:
        """Start the command unless it runs, and return the other side's greeting."""
        if self._process is None:
            self._greeting = self._started()
        return self._greeting

    def ask(self, call: bytes, *, progress: Progress) -> Frame:
        """Send a call and return the answer or the refusal; raise RemoteFailed if the connection breaks."""
        try:
            self._send(call)
            return last_frame(self._next, self.name, progress)
        except BaseException:
            self.close()
            raise

    def end(self) -> None:
        """End the command from another thread: the other side sees the end of its input, and ends what is at work."""
        process = self._process
        if process is not None:
            process.terminate()

    def close(self) -> None:
        """Close the connection: the other side ends what is at work."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _started(self) -> bytes:
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise RemoteFailed(
                f"can't start {self._command[0]!r} for {self.name} ({error}): expected a program on the PATH"
            ) from error
        try:
            frame = self._next()
            if frame.kind != "hello":
                raise RemoteFailed(f"{self.name} sent {frame.kind}: expected a greeting; run the command again")
        except BaseException:
            self.close()
            raise
        return frame.payload

    def _send(self, call: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            write_frame(self._process.stdin, Frame("call", call))  # type: ignore[arg-type]
        except OSError as error:
            raise RemoteFailed(
                f"the connection to {self.name} broke ({error}): run the command again",
                hint=f"try it by hand: {shlex.join(self._command)}",
            ) from error

    def _next(self) -> Frame:
        frame = read_frame(self._read)
        if frame is None:
            raise RemoteFailed(
                f"{self.name} ended the connection: expected a Forge there that answers",
                hint=f"try it by hand: {shlex.join(self._command)}",
            )
        return frame

    def _read(self, size: int) -> bytes:
        """Return the next bytes, fewer only at the end; raise RemoteFailed if nothing comes for too long."""
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor, chunks = self._process.stdout.fileno(), list[bytes]()
        while size > 0:
            ready, _, _ = select.select([descriptor], [], [], SILENT_S)
            if not ready:
                raise RemoteFailed(
                    f"{self.name} sent nothing for {SILENT_S:.0f} s: expected a sign of life every 5 s"
                )
            chunk = os.read(descriptor, min(size, 2**20))
            if not chunk:
                break
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)
