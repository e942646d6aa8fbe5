"""Asks a guest that runs a model, from the host's side: a command in, an untrusted document out."""

import json
from collections.abc import Mapping
from typing import Any

from forge.errors import UsageError
from forge.guest import wire
from forge.sandbox.arena import Arena
from forge.sandbox.channel import Channel


class ModelGuest:
    """One guest that runs the model."""

    def __init__(self, channel: Channel, arena: Arena, name: str) -> None:
        self._channel, self._arena, self._name = channel, arena, name

    def ask(self, body: Mapping[str, object], patience_s: float) -> dict[str, Any]:
        """Send a command and return the answer; raise UsageError if the model can't do it."""
        self._channel.guest.begin()
        self._channel.send(wire.pack_command(wire.SETUP, json.dumps(body).encode()))
        untrusted = self._channel.await_reply(patience_s)
        self._channel.guest.rest()
        if not untrusted:
            ended = "gave no answer in time" if untrusted is None else "ended"
            raise UsageError(
                f"the model {self._name!r} {ended}: {self._channel.guest.log()[-400:].strip() or 'it said nothing'}; "
                "expected a model that fits into memory_limit_bytes of policy.toml"
            )
        try:
            record = wire.unpack_record(untrusted)
            said: dict[str, Any] = json.loads(self._arena.untrusted_bytes(record.completed))
            problem = said.get("problem")
        except (ValueError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"the model {self._name!r} gave an answer that can't be read ({error}): expected JSON in a record"
            ) from error
        if problem is not None:
            shown = "".join(one if one.isprintable() else "?" for one in str(problem)[:800])
            raise UsageError(f"the model {self._name!r} can't be measured: {shown}; correct it first")
        return said
