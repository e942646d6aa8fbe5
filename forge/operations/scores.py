"""How many known wrong answers each operation refuses: its mutant score, as it was last tried.

The numbers are measured by `make scores` and kept in a file, so that reading them needs no torch; a test tries every
operation anew and fails where the file says something else.
"""

import json
from functools import cache
from pathlib import Path

from pydantic import Field

from forge.domain.digest import Value
from forge.domain.tensors import DType

SCORES_FILE = Path(__file__).parent / "mutant_scores.json"


class MutantScore(Value):
    """What one operation's inputs and bound made of known wrong and right answers, in every element type it has."""

    mutants: tuple[str, ...]
    """Wrong answers that were tried, by name."""
    survivors: dict[str, tuple[DType, ...]] = Field(default_factory=dict)
    """Of these, those that would be accepted, and in which types."""
    honest: tuple[str, ...]
    """Right answers, computed in other ways, that were tried."""
    refused: dict[str, tuple[DType, ...]] = Field(default_factory=dict)
    """Of these, those that would be refused, and in which types."""

    @property
    def killed(self) -> int:
        """Wrong answers that are refused in every type."""
        return len(self.mutants) - len(self.survivors)

    @property
    def accepted(self) -> int:
        """Right answers that are accepted in every type."""
        return len(self.honest) - len(self.refused)


@cache
def mutant_scores() -> dict[str, MutantScore]:
    """Every operation's score, by name."""
    recorded = json.loads(SCORES_FILE.read_text(encoding="utf-8"))
    return {name: MutantScore.model_validate_json(json.dumps(score)) for name, score in recorded.items()}
