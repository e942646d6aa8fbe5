"""A person's decision."""

from typing import ClassVar

from forge.events.fact import Fact, Group


class HumanDecided(Fact):
    """A person made a decision that no rule makes."""

    TYPE: ClassVar[str] = "HumanDecided"
    GROUP: ClassVar[Group] = "human"
    subject_stream: str
    subject: str
    choice: str
    reason: str

    def stream(self) -> str:
        """Return the stream of the subject of the decision."""
        return self.subject_stream
