"""Starts a guest with a pipe for commands and a pipe for replies, and moves bytes through both.

What a reply says is untrusted; `session` and `one_shot` decide how long to wait and what a silence means.
"""

import contextlib
import os
import select
import time

from forge.domain.verdict import Reason
from forge.guest import wire
from forge.sandbox.arena import Arena
from forge.sandbox.launch import Exit, Guest
from forge.sandbox.limits import Limits
from forge.sandbox.stage import Stage

CLOSED = Reason(code="TAMPERING", message="the guest closed the reply channel")
"""Reason for a guest that still runs and can't reply any more."""

_LOOK_S = 1.0
"""Seconds between two looks at whether a guest that doesn't answer still exists. A guest that ends closes the
channel, which the host sees at once. Only a child that keeps the channel open makes it wait for a look."""
_CLOSED_S = 2.0
"""Seconds between the end of a guest's replies and a look at whether it still runs. Chosen; a longer time delays the
verdict on a guest that closes its channel and runs on."""


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

    def await_reply(self, patience_s: float | None = None) -> bytes | None:
        """Wait for a reply, and return its untrusted bytes; none if the guest has ended or closed the channel.

        Return None if there is no reply after `patience_s` seconds. Without patience, only the guest's limits end it.
        """
        until_s = None if patience_s is None else time.monotonic() + patience_s
        while True:
            left_s = _LOOK_S if until_s is None else min(_LOOK_S, max(0.0, until_s - time.monotonic()))
            if self.is_readable(left_s):
                return self.untrusted_reply()
            if until_s is not None and time.monotonic() >= until_s:
                return None
            if self.guest.poll() is not None:  # where there are no namespaces, a child may keep the channel open
                return self.untrusted_reply() if self.is_readable(0) else b""

    def end(self) -> Exit | None:
        """Wait for the end of a guest whose replies have ended; return None if it runs on without them."""
        ended = self.guest.wait(_CLOSED_S)
        while ended is None and self.guest.ending:  # a busy machine takes its time to end processes
            ended = self.guest.wait(_CLOSED_S)
        return ended

    def is_readable(self, patience_s: float) -> bool:
        """Return whether the guest writes, closes its end or ends within `patience_s` seconds."""
        return bool(select.select([self._replies], [], [], patience_s)[0])

    def untrusted_reply(self) -> bytes:
        """Return what the guest wrote, up to one byte more than a record; nothing if it has closed its end."""
        return os.read(self._replies, wire.RECORD_BYTES + 1)
