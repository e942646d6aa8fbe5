"""The base of every event: a frozen value with a stable name, a version and a stream."""

from typing import ClassVar

from forge.domain.digest import Value


class Fact(Value):
    """Base of all events. `TYPE` and `SCHEMA_VERSION` never change; they are columns and not part of the payload."""

    TYPE: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int] = 1

    def stream(self) -> str:
        """Return the stream that this event is appended to: `<category>:<id>`."""
        raise NotImplementedError(f"{type(self).__name__} names no stream")
