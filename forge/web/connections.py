"""One connection of the server: it ends if a request's head comes too slowly, or if its answer isn't read.

The guard sees a request once its head is whole. What a connection may cost before that, and after its answer, is
bounded here.
"""

import asyncio
import resource

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from forge.errors import RequestRefused
from forge.web.problems import problem

MOST_CONNECTIONS = 1200
"""Number of connections at once; further callers are told to come again. Chosen: some hundred live clients, and as
many that ask."""
HEAD_S = 10.0
"""Longest time in seconds that the first line and the headers of a request may take. Chosen; a browser sends them at
once."""
OWN_FILES = 200
"""Number of open files that the server keeps for itself: databases, stored files, pipes of its children. Chosen; it
has some 40 open."""
UNREAD_S = 60.0
"""Longest time in seconds that an answer waits for a client that reads nothing of it. Chosen; a sleeping laptop
connects again."""


class TimedConnection(H11Protocol):
    """A connection with a time for the head of each request, and a time for a reader that takes nothing."""

    most = MOST_CONNECTIONS
    """Number of connections that this process has room for."""
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin, or refuse a connection that is one too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(503, f"{self.most} connections are open already: come again in a second")
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._end_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has arrived; the head's time ends with the head."""
        super().data_received(data)
        if self._is_answering() and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def on_response_complete(self) -> None:
        """Expect another request, or the rest of a body that nothing has read."""
        super().on_response_complete()
        if not self._is_answering() and not self.transport.is_closing():
            self._expect_head()

    def pause_writing(self) -> None:
        """Begin to wait for the reader."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the reader has taken something."""
        super().resume_writing()
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what isn't HTTP."""
        self._refuse(400, f"{msg} Expected HTTP/1.1")

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self._end_timers()
        self._head_timer = self.loop.call_later(HEAD_S, self._give_up)

    def _give_up(self) -> None:
        begun, _ = self.conn.trailing_data
        if begun and self.conn.our_state is h11.IDLE:
            self._refuse(408, f"the request's head didn't arrive within {HEAD_S:g} s: send it at once")
        else:
            self.transport.abort()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer with a problem document, and end the connection."""
        self._end_timers()
        self.transport.write(_as_bytes(problem(status, code=RequestRefused.code, detail=detail)))
        self.transport.close()

    def _end_timers(self) -> None:
        for timer in (self._head_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._read_timer = None


def room_for_connections() -> int:
    """Return how many connections the limit of open files allows; the limit is raised as far as it may be."""
    most, (soft, hard) = MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        most = max(1, soft - OWN_FILES)
    return min(most, MOST_CONNECTIONS)


def _as_bytes(response: Response) -> bytes:
    """Return an answer as it is sent, with the connection's end."""
    first = h11.Connection(h11.SERVER)
    headers = [*response.raw_headers, (b"connection", b"close")]
    head = first.send(h11.Response(status_code=response.status_code, headers=headers))
    return (head or b"") + bytes(response.body)
