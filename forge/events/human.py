"""A person's decision."""

from typing import ClassVar

from forge.events.fact import Fact


class HumanDecided(Fact):
    """A person chose something that no rule decides."""

    TYPE: ClassVar[str] = "HumanDecided"
    subject_stream: str
    subject: str
    choice: str
    reason: str

    def stream(self) -> str:
        """The stream of what was decided about."""
        return self.subject_stream
