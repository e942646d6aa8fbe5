"""Streams recorded events to browsers and programs, in the ledger's order, without loss or repeat.

One task looks at the ledger for all clients. A client has a place of its own, and nothing is kept for it: one that
doesn't read waits in its own connection. All clients are told what everyone may know. What only some may know of an
event, they read by its number.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

import orjson

from forge.app.access.tokens import READER, Caller
from forge.app.desk import history
from forge.app.desk.desk import Desk
from forge.app.desk.rates import LongAnswers
from forge.errors import ForgeError, RequestRefused

LOOK_S = 0.05
"""Time between two looks at the ledger, in seconds: a fraction of the 250 ms in which an event is sent."""
HEARTBEAT_S = 15.0
"""Time after which a quiet stream says that it stands, in seconds; proxies end quiet connections after a minute."""
KEPT_EVENTS = 512
"""Number of newest events that are kept for clients that are nearly up to date. Chosen; they take 8 MiB at most."""
PAGE_EVENTS = 200
"""Number of events that are read at a time for a client that is far behind. Chosen; other clients wait while a page
is read."""
HEARTBEAT = b": heartbeat\n\n"
"""Bytes that are sent when nothing happens, so that proxies keep the connection."""


@dataclass
class Stream:
    """Tells all clients of one server of new events."""

    desk: Desk
    clients: LongAnswers = field(default_factory=LongAnswers)
    _kept: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    _head: int = 0
    _grown: asyncio.Event = field(default_factory=asyncio.Event)
    _looking: "asyncio.Task[None] | None" = None

    async def follow(self, after: int | None, token: str | None = None) -> AsyncIterator[bytes]:
        """Yield each event after `after`, then each new one; None begins at the head. It ends with its token.

        Raises RequestRefused beyond the head, and if there are too many clients; TokenRefused.
        """
        caller = await self._caller(token)
        self.clients.require(caller)
        head = await asyncio.wrap_future(self.desk.read(lambda view: view.head.seq))
        if after is not None and after > head:
            raise RequestRefused(
                f"event {after} isn't there yet: expected 0 to {head}, the ledger's head", status=400
            )
        return self._told(head if after is None else after, token, caller)

    async def _told(self, seq: int, token: str | None, caller: Caller) -> AsyncIterator[bytes]:
        with self.clients.taken(caller), suppress(ForgeError):
            # an error: the ledger was replaced, or the token is no more. The client asks again, and is told then
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            yield HEARTBEAT
            while True:
                grown = self._grown
                found = await self._after(seq)
                await self._caller(token)
                for place, told in found:
                    yield told
                    seq = place
                if seq < self._head:
                    continue
                try:
                    await asyncio.wait_for(grown.wait(), HEARTBEAT_S)
                except TimeoutError:
                    yield HEARTBEAT

    async def _caller(self, token: str | None) -> Caller:
        """Return who asks; raise TokenRefused for a token that isn't accepted any more."""
        if token is None:
            return READER
        return await asyncio.wrap_future(self.desk.read(lambda view: view.caller(token)))

    async def _after(self, seq: int) -> list[tuple[int, bytes]]:
        """Return the next events after `seq`: kept ones, or a page that is read."""
        if self._kept and self._kept[0][0] <= seq + 1:
            return [one for one in self._kept if one[0] > seq]
        if self._head and seq >= self._head:
            return []
        return await self._read(seq)

    async def _look(self) -> None:
        """Read new events while there are clients."""
        while self.clients:
            try:
                await self._take_up(await asyncio.wrap_future(self.desk.read(lambda view: view.head.seq)))
            except ForgeError:
                self._kept.clear()
            await asyncio.sleep(LOOK_S)
        self._kept.clear()
        self._head = 0

    async def _take_up(self, head: int) -> None:
        """Keep the events up to `head`, and wake the clients if there are any."""
        if head == self._head:
            return
        if not self._head or head < self._head:  # the first look, or another ledger stands there now
            self._kept.clear()
            self._head = head
        while self._head < head:
            found = await self._read(self._head)
            if not found:
                break
            self._kept.extend(found)
            self._head = found[-1][0]
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    async def _read(self, seq: int) -> list[tuple[int, bytes]]:
        found = await asyncio.wrap_future(
            self.desk.read(lambda view: history.events_after(view, READER, seq, limit=PAGE_EVENTS))
        )
        return [(int(str(one["seq"])), _sent(one)) for one in found]


def _sent(event: dict[str, object]) -> bytes:
    """Return an event in the form of the HTML standard, section 9.2."""
    return f"id: {event['seq']}\nevent: recorded\ndata: ".encode() + orjson.dumps(event) + b"\n\n"
