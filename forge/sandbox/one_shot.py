"""Runs a guest for a single command, from the host's side: a command in, bytes out, in a separate sandbox."""

import json
import os
import select
from collections.abc import Mapping
from dataclasses import replace

from forge.domain.verdict import Reason
from forge.guest import wire
from forge.sandbox.arena import Arena
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused, parse_reply
from forge.sandbox.session import exit_reason
from forge.sandbox.stage import Stage


def run_one_shot(
    stage: Stage,
    script: str,
    body: Mapping[str, object],
    *,
    what: str,
    most_bytes: int,
    limits: Limits,
    threads: int,
) -> bytes | Refused:
    """Start one of the stage's scripts, send it `body`, and return the untrusted bytes of its result.

    Raise ValueError if it says that the result is larger than the arena.
    """
    arena = Arena(most_bytes)
    command_read, commands = os.pipe()
    replies, reply_write = os.pipe()
    try:
        body_with_sizes = {**body, "arena_bytes": arena.size_bytes, "threads": threads}
        guest = stage.start(
            script,
            descriptors=(command_read, reply_write, arena.descriptor),
            limits=limits,
            threads=threads,
        )
        os.close(command_read)
        os.close(reply_write)
        command_read = reply_write = -1
        with guest:
            os.write(commands, wire.pack_command(wire.SETUP, json.dumps(body_with_sizes).encode()))
            readable = select.select([replies], [], [], limits.wall_s)[0]
            untrusted = os.read(replies, wire.RECORD_BYTES + 1) if readable else b""
            if not untrusted:
                ended = guest.wait(1.0)
                late = f"{what} took longer than {limits.wall_s:g} s"
                reason = exit_reason(ended, limits) if ended else _silent(late, closed=bool(readable))
                by_the_clock = ended.by_the_clock if ended else not readable
                return Refused(reason, guest.log(), by_the_clock=by_the_clock)
            answer = parse_reply(untrusted, call_id=0, elapsed_ns=0, calls=None)
            if isinstance(answer, Refused):
                return replace(answer, log=guest.log())
        if answer.completed > arena.size_bytes:
            raise ValueError(f"{what} says that its result is larger than the arena")
        return arena.untrusted_bytes(answer.completed)
    finally:
        for descriptor in (commands, replies, command_read, reply_write):
            if descriptor >= 0:
                os.close(descriptor)
        arena.close()


def _silent(late: str, *, closed: bool) -> Reason:
    """Return the reason for no reply from a guest that still runs."""
    if closed:
        return Reason(code="TAMPERING", message="the guest closed the reply channel")
    return Reason(code="TIMEOUT", message=late)
