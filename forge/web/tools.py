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
    _made: "asyncio.Future[Starlette] | None" = None
    _end: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        assert self._made is not None, "a server answers within its lifespan"
        app = await asyncio.shield(self._made)
        await app.router(scope, receive, send)  # without its middleware: errors are answered by the server around it

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Import the tools while the block runs, and end with it what runs around them."""
        self._made = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(self._made))
        try:
            yield
        finally:
            self._end.set()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, made: "asyncio.Future[Starlette]") -> None:
        try:
            app, around = await asyncio.to_thread(self.make)
        except Exception as error:
            made.set_exception(error)  # each call answers with it
            raise
        async with around():
            made.set_result(app)
            await self._end.wait()
