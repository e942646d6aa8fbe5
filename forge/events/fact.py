"""The base of every event: a frozen value with a stable name."""

from typing import ClassVar

from forge.domain.digest import Value
from forge.events.kinds import KINDS


class Fact(Value):
    """Base of all events. `TYPE` never changes; it is a column and not part of the payload."""

    TYPE: ClassVar[str]

    def stream(self) -> str:
        """Return the stream that this event is appended to: `<category>:<id>`."""
        return KINDS[self.TYPE].stream.format_map(vars(self))
