"""What a phase gives back: events to append, after the bytes they name have been stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forge.events import Event


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One phase's result; nothing has been written yet."""

    events: tuple[Event, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """For the run's directory, by the names a person looks for."""
    blobs: tuple[bytes, ...] = ()
    """For the content-addressed store; events name them by SHA-256."""
