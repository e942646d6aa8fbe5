"""The mutant score of each operation: how many known wrong answers it refuses.

`make scores` measures the numbers and stores them in a file, so reading them needs no torch. A test measures every
operation again and fails if the file differs.
"""

import json
from functools import cache
from pathlib import Path

from pydantic import Field

from forge.domain.digest import Value
from forge.domain.tensors import DType

SCORES_FILE = Path(__file__).parent / "mutant_scores.json"


class MutantScore(Value):
    """The result of one operation's inputs and bound on known wrong and right answers, in all its element types."""

    mutants: tuple[str, ...]
    """Names of the wrong answers that were tried."""
    survivors: dict[str, tuple[DType, ...]] = Field(default_factory=dict)
    """Wrong answers that would be accepted, with the types."""
    honest: tuple[str, ...]
    """Names of the right answers, computed in other ways, that were tried."""
    refused: dict[str, tuple[DType, ...]] = Field(default_factory=dict)
    """Right answers that would be refused, with the types."""

    @property
    def killed(self) -> int:
        """The number of wrong answers that are refused in every type."""
        return len(self.mutants) - len(self.survivors)

    @property
    def accepted(self) -> int:
        """The number of right answers that are accepted in every type."""
        return len(self.honest) - len(self.refused)


@cache
def mutant_scores() -> dict[str, MutantScore]:
    """Return every operation's score by name."""
    recorded = json.loads(SCORES_FILE.read_text(encoding="utf-8"))
    return {name: MutantScore.model_validate_json(json.dumps(score)) for name, score in recorded.items()}
