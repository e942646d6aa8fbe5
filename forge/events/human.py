"""A person's decision."""

from typing import ClassVar

from forge.events.fact import Fact


class HumanDecided(Fact):
    """A person made a decision that no rule makes."""

    TYPE: ClassVar[str] = "HumanDecided"
    subject_stream: str
    subject: str
    choice: str
    reason: str
