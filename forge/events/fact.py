"""What every event is: a frozen value with a stable name, a version, and the stream it belongs to."""

from typing import ClassVar

from forge.domain.digest import Value


class Fact(Value):
    """Base of all events. `TYPE` and `SCHEMA_VERSION` are for ever; they are columns, not payload."""

    TYPE: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int] = 1

    def stream(self) -> str:
        """`<category>:<id>`: the sequence in which this event takes the next place."""
        raise NotImplementedError(f"{type(self).__name__} names no stream")
