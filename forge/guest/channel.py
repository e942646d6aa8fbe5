"""Runs beside hostile code. Reads commands and writes records on the inherited descriptors."""

import json
import os
from typing import NamedTuple

from . import wire


class Setup(NamedTuple):
    """A JSON command."""

    body: dict[str, object]


class Go(NamedTuple):
    """Run one function on a range of sets."""

    call_id: int
    function: int
    first: int
    count: int  # type: ignore[assignment]  # a tuple's method of this name isn't used
    retain: bool
    scalars: tuple[float, ...]
    cycles: int = 1
    """Number of times the range of sets is gone through."""
    ways: wire.Ways = wire.NO_WAYS
    """Ways in which the calls are made."""
    filling: int = 0
    """Byte with which C's allocator fills new and freed memory; 0 for none."""


class Chain(NamedTuple):
    """Make a number of calls; the outputs of each call choose the set of the next."""

    call_id: int
    function: int
    """Index of the function, or `wire.IDLE` to call nothing."""
    first: int
    count: int  # type: ignore[assignment]  # a tuple's method of this name isn't used
    copies: bool
    """Whether the outputs are copied to the arena after the last call, since the host can't read this process."""
    scalars: tuple[float, ...]


class Time(NamedTuple):
    """Time one function over all sets."""

    call_id: int
    function: int
    repeats: int
    rotation_offset: int
    copied: int
    """Index of the set whose operands are copied out afterwards, or `wire.NO_SET`."""
    again: bool
    """Whether the last window's graph is replayed without a change."""
    resident: bool
    """Whether the operands stay in the last-level cache after they are written."""
    scalars: tuple[float, ...]


def read_command() -> Setup | Go | Chain | Time | None:
    """Wait for the next command; return None if the host has closed the channel."""
    header = _read_exactly(wire.COMMAND_HEADER.size)
    if header is None:
        return None
    kind, length = wire.COMMAND_HEADER.unpack(header)
    body = _read_exactly(length)
    if body is None:
        return None
    if kind == wire.GO:
        call_id, function, first, count, cycles, retain, ways, filling, *scalars = wire.GO_BODY.unpack(body)
        made = cycles, wire.Ways(ways), filling
        return Go(call_id, function, first, count, bool(retain), tuple(scalars), *made)
    if kind == wire.CHAIN:
        call_id, function, first, count, copies, *scalars = wire.CHAIN_BODY.unpack(body)
        return Chain(call_id, function, first, count, bool(copies), tuple(scalars))
    if kind == wire.TIME:
        call_id, function, repeats, rotation_offset, copied, again, resident, *scalars = wire.TIME_BODY.unpack(body)
        flags = bool(again), bool(resident)
        return Time(call_id, function, repeats, rotation_offset, copied, *flags, tuple(scalars))
    return Setup(json.loads(body))


def reply(
    call_id: int,
    status: int,
    *,
    completed: int = 0,
    outputs: tuple[wire.OutputForm, ...] = (),
    device_ns: int = 0,
    addresses: tuple[int, ...] = (),
) -> None:
    """Send the one record that answers a command."""
    record = wire.Record(call_id, status, completed, outputs, device_ns, addresses)
    os.write(wire.REPLIES, wire.pack_record(record))


def _read_exactly(length: int) -> bytes | None:
    chunks = []
    while length:
        chunk = os.read(wire.COMMANDS, length)
        if not chunk:
            return None
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)
