"""What a phase gives back: events to append, after the bytes they name have been stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forge.errors import EnvironmentUnfit
from forge.events import Event


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One phase's result; nothing has been written yet."""

    events: tuple[Event, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """For the run's directory, by the names a person looks for."""
    blobs: tuple[bytes, ...] = ()
    """For the content-addressed store; events name them by SHA-256."""


def detail_of(error: EnvironmentUnfit | OSError) -> str:
    """What an event says of a machine's fault: the message, and what to do about it."""
    hint = getattr(error, "hint", None)
    return f"{error}; {hint}" if hint else str(error)
