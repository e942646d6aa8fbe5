"""Starts a guest with a pipe for commands and a pipe for replies, and moves bytes through both.

What a reply says is untrusted; `session` and `one_shot` decide how long to wait and what a silence means.
"""

import contextlib
import os
import select

from forge.domain.verdict import Reason
from forge.guest import wire
from forge.sandbox.arena import Arena
from forge.sandbox.launch import Guest
from forge.sandbox.limits import Limits
from forge.sandbox.stage import Stage

CLOSED = Reason(code="TAMPERING", message="the guest closed the reply channel")
"""Reason for a guest that still runs and can't reply any more."""


class Channel:
    """A guest and the host's ends of its two pipes."""

    def __init__(self, stage: Stage, script: str, arena: Arena, *, limits: Limits, threads: int) -> None:
        command_read, self._commands = os.pipe()
        self._replies, reply_write = os.pipe()
        try:
            self.guest: Guest = stage.start(
                script,
                descriptors=(command_read, reply_write, arena.descriptor),
                limits=limits,
                threads=threads,
            )
        except BaseException:
            os.close(self._commands)
            os.close(self._replies)
            raise
        finally:
            os.close(command_read)
            os.close(reply_write)

    def close(self) -> None:
        """Kill the guest with everything it has started, and close the pipes."""
        self.guest.kill()
        self.send_no_more()
        os.close(self._replies)

    def send(self, command: bytes) -> bool:
        """Send a command; return False if the guest has closed its end."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._commands, command)
            return True
        return False

    def send_no_more(self) -> None:
        """Close the pipe for commands, so that the guest ends by itself."""
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1

    def is_readable(self, patience_s: float) -> bool:
        """Return whether the guest writes, closes its end or ends within `patience_s` seconds."""
        return bool(select.select([self._replies], [], [], patience_s)[0])

    def untrusted_reply(self) -> bytes:
        """Return what the guest wrote, up to one byte more than a record; nothing if it has closed its end."""
        return os.read(self._replies, wire.RECORD_BYTES + 1)
