"""Says that a contender failed while it was timed, so that all is measured again without it."""

from forge.domain.contender_name import is_contender
from forge.lab.finding import Failed


class ContenderFailedError(Exception):
    """A contender that was right in its screening failed or answered wrongly while it was timed."""

    def __init__(self, name: str, failed: Failed) -> None:
        super().__init__(f"{name}: {failed.reason.message}")
        self.name = name
        self.failed = failed


def raise_for_contender(side: str, failed: Failed) -> None:
    """Raise ContenderFailedError if the side that failed is a contender."""
    if is_contender(side):
        raise ContenderFailedError(side, failed)
