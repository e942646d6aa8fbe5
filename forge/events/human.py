"""A person's decision."""

from forge.events.fact import Fact


class HumanDecided(Fact):
    """A person made a decision that no rule makes."""

    subject_stream: str
    subject: str
    choice: str
    reason: str
