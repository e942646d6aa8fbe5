"""Serves the tools at /mcp. Their packages take longer to import than the rest of the server, so they come later."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

Tools = tuple[Starlette, Callable[[], AbstractAsyncContextManager[None]]]
"""An application, and what must run around it."""


@dataclass
class LaterTools:
    """Answers calls of tools; a call that comes before they are imported waits for them."""

    make: Callable[[], Tools]
    _making: "asyncio.Task[Tools] | None" = None
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _end: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call. The server around it answers errors, so the application's middleware is left out."""
        assert self._making is not None, "a server answers within its lifespan"
        app, _ = await asyncio.shield(self._making)
        await self._ready.wait()
        await app.router(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Import the tools while the block runs, and end with it what runs around them."""
        self._making = asyncio.create_task(asyncio.to_thread(self.make))
        running = asyncio.create_task(self._run(self._making))
        try:
            yield
        finally:
            self._end.set()
            await asyncio.gather(running, return_exceptions=True)

    async def _run(self, making: "asyncio.Task[Tools]") -> None:
        _, around = await making
        async with around():
            self._ready.set()
            await self._end.wait()
