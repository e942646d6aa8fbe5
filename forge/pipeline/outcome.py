"""The result of a phase: events to append, after the bytes that they name are stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forge.errors import EnvironmentUnfit
from forge.events import Event


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One phase's result. Nothing has been written yet."""

    events: tuple[Event, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files for the run's directory, by name."""
    blobs: tuple[bytes, ...] = ()
    """Blobs for the content-addressed store. Events name them by SHA-256."""


def detail_of(error: EnvironmentUnfit | OSError) -> str:
    """Return the text of a machine's fault for an event: the message and its hint."""
    hint = getattr(error, "hint", None)
    return f"{error}; {hint}" if hint else str(error)
