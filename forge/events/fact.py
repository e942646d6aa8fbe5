"""The base of every event: a frozen value with a stable name."""

from typing import ClassVar

from forge.domain.digest import Value
from forge.events.kinds import KINDS


class Fact(Value):
    """Base of all events. The class's name is the type's: it never changes, and is a column beside the payload."""

    TYPE: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Name the type."""
        cls.TYPE = cls.__name__

    def stream(self) -> str:
        """Return the stream that this event is appended to: `<category>:<id>`."""
        return KINDS[self.TYPE].stream.format_map(vars(self))
