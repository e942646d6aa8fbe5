"""Runs a guest for a single command, from the host's side: a command in, bytes out, in a separate sandbox."""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from forge.guest import wire
from forge.sandbox.arena import Arena
from forge.sandbox.channel import CLOSED, Channel
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused, Returned, parse_reply
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
    arena, limits = Arena(most_bytes), stage.bounded(limits)
    try:
        body_with_sizes = {**body, "arena_bytes": arena.size_bytes, "threads": threads}
        with closing(Channel(stage, script, arena, limits=limits, threads=threads)) as channel:
            answer = _answer(channel, body_with_sizes, limits=limits)
        if isinstance(answer, Refused):
            return answer
        if answer.completed > arena.size_bytes:
            raise ValueError(f"{what} says that its result is larger than the arena")
        return arena.untrusted_bytes(answer.completed)
    finally:
        arena.close()


def _answer(channel: Channel, body: Mapping[str, object], *, limits: Limits) -> Returned | Refused:
    channel.send(wire.pack_command(wire.SETUP, json.dumps(body).encode()))
    untrusted = channel.await_reply()
    if not untrusted:
        ended, log = channel.end(), channel.guest.log()
        if ended is None:
            return Refused(CLOSED, log)
        return Refused(exit_reason(ended, limits), log, from_load=ended.from_load)
    answer = parse_reply(untrusted, call_id=0, elapsed_ns=0, calls=None)
    return replace(answer, log=channel.guest.log()) if isinstance(answer, Refused) else answer
