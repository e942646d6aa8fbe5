"""Screening: trials of an author's drafts. They rank drafts and are never evidence."""

from typing import Annotated

from pydantic import Field

from forge.domain.authoring import Screened
from forge.domain.digest import Digest
from forge.events.fact import Fact


class TrialsScreened(Fact):
    """Drafts of a session were compiled, asked at visible shapes, and timed beside one reference.

    No decision reads this event. A draft becomes evidence only as a candidate that goes through every phase.
    """

    session_id: str
    task_id: str
    step: Annotated[int, Field(ge=0)]
    """Ordinal of the author's step in its session, from 0."""
    screened: Screened
    samples_sha256: Digest
    """Digest of all paired windows, as stored bytes."""
    env_sha256: Digest
    elapsed_s: Annotated[float, Field(ge=0)]
    """Wall time of the screening in seconds."""
