"""What an author has learned: the log that its next step follows from, read from what a session recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from forge.domain.authoring import Denied, LogEntry, Replied
from forge.domain.digest import Digest
from forge.events.session import ModelFailed, ModelResponded
from forge.projections.sessions import RequestState, RoundState, SessionState

ENTRY: TypeAdapter[Any] = TypeAdapter(Annotated[LogEntry, Field(discriminator="kind")])
"""Parser of a stored entry, by its `kind`."""


@dataclass
class Learned:
    """The entries of a session's author; each is read once."""

    content: Callable[[Digest], bytes]
    """Returns stored bytes."""
    _entries: dict[int, LogEntry] = field(default_factory=dict)
    """Request -> its entry, once it was read."""

    def log(self, state: SessionState) -> list[LogEntry]:
        """Return what the author has learned so far."""
        return [entry for one in state.rounds for entry in self.of_round(one)]

    def of_round(self, one: RoundState) -> list[LogEntry]:
        """Return what the author learned from one round."""
        if one.wish is not None:
            return [Denied(wish=one.wish.wish)]
        return [self._entry(request) for request in one.requests if request.gave_an_answer]

    def _entry(self, request: RequestState) -> LogEntry:
        found = self._entries.get(request.number)
        if found is None:
            found = self._entries[request.number] = self._read(request)
        return found

    def _read(self, request: RequestState) -> LogEntry:
        if request.answered is not None:
            return ENTRY.validate_json(self.content(request.answered.entry_sha256))  # type: ignore[no-any-return]  # an adapter of a union
        if isinstance(request.ended, ModelResponded):
            return Replied(text=self.content(request.ended.response_sha256).decode(errors="replace"))
        assert isinstance(request.ended, ModelFailed)
        return Replied(text=None, failure=f"{request.ended.cause}: {request.ended.detail}")
